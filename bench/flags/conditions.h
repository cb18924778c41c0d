#pragma once

#include "bench/flags/config.h"
#include "bench/flags/sizes.h"

namespace cnn::bench {

// Conditions that rows of the flag table ask of a configuration to say where their flag is idle.

inline bool on_cpu(const Config& config) { return config.device == DeviceKind::cpu; }

inline bool simulates(const Config& config) { return config.gpu.simulate.has_value(); }

inline bool on_synthetic_data(const Config& config) { return !config.data.dir; }

inline bool on_real_data(const Config& config) { return !on_synthetic_data(config); }

// One device, or several that keep their gradients; where mpirun's ranks exchange, the mode says
// it.
inline bool exchanges_nothing(const Config& config) {
  const VariableUpdate mode = config.variable_update;
  const bool local = mode == VariableUpdate::parameter_server || mode == VariableUpdate::replicated;
  return mode == VariableUpdate::independent ||
         (local && config.num_gpus <= 1 && !config.comm.launched &&
          config.comm.simulate_ranks.empty());
}

// Ranks that train the same thing alone, so that one that computes wrongly shows.
inline bool repeats_on_all_ranks(const Config& config) {
  return config.comm.check == CommCheck::majority;
}

// Event files of the steps, for TensorBoard.
inline bool writes_summaries(const Config& config) {
  const SummaryOptions& summaries = config.report.summaries;
  return summaries.verbosity > 0 && summaries.every > 0 && config.checkpoint.train_dir &&
         !config.mode.eval && !simulates(config);
}

inline bool evaluates(const Config& config) {
  const Mode mode = mode_of(config);
  return mode == Mode::evaluation || mode == Mode::training_and_evaluation;
}

}  // namespace cnn::bench
