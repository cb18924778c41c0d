#pragma once

#include "bench/flags/config.h"
#include "bench/flags/sizes.h"

namespace cnn::bench {

// Conditions on a configuration, for the flag table's rules about flags without effect.

inline bool on_cpu(const Config& config) { return config.device == DeviceKind::cpu; }

inline bool simulates(const Config& config) { return config.gpu.simulate.has_value(); }

inline bool on_synthetic_data(const Config& config) { return !config.data.dir; }

inline bool on_real_data(const Config& config) { return !on_synthetic_data(config); }

// Returns whether there is no gradient exchange: a single device, or devices that keep their
// gradients. With mpirun's ranks, the mode decides.
inline bool exchanges_nothing(const Config& config) {
  const VariableUpdate mode = config.variable_update;
  const bool local = mode == VariableUpdate::parameter_server || mode == VariableUpdate::replicated;
  return mode == VariableUpdate::independent ||
         (local && config.num_gpus <= 1 && !config.comm.launched &&
          config.comm.simulate_ranks.empty());
}

// Returns whether all ranks train the same model redundantly, which reveals a faulty rank.
inline bool repeats_on_all_ranks(const Config& config) {
  return config.comm.check == CommCheck::majority;
}

// Returns whether the run writes event files of its steps for TensorBoard.
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
