#pragma once

#include <string_view>

#include "bench/flags/config.h"
#include "bench/flags/sizes.h"

namespace cnn::bench {

// Conditions on a configuration, for the flag table's rules about flags without effect.

inline bool on_cpu(const Config& config) { return config.device == DeviceKind::cpu; }

inline bool simulates(const Config& config) { return config.gpu.simulate.has_value(); }

// Returns the flag that asks for a plan or a size alone, or an empty text.
inline std::string_view plans_only_for(const Config& config) {
  if (simulates(config)) {
    return "--simulate";
  }
  if (config.search.any()) {
    return config.search.batch ? "--find_max_batch" : "--find_max_image_size";
  }
  return config.lms.enabled && config.lms.simulate_only ? "--lms_simulate_only" : "";
}

inline bool plans_only(const Config& config) { return !plans_only_for(config).empty(); }

// Returns the flag for which no step of the network runs, or an empty text.
inline std::string_view runs_no_step_for(const Config& config) {
  return config.data.input_only ? "--input_only" : plans_only_for(config);
}

inline bool on_synthetic_data(const Config& config) { return !config.data.dir; }

inline bool on_real_data(const Config& config) { return !on_synthetic_data(config); }

// Returns whether the run plans no step: it searches a size, or reads files alone.
inline bool makes_no_plan(const Config& config) {
  return config.search.any() || config.data.input_only;
}

inline bool trains_nothing(const Config& config) {
  return config.mode.eval || config.mode.forward_only;
}

// Returns whether there is no gradient exchange: no gradients, a single device, or devices that
// keep their gradients. With mpirun's ranks, --variable_update decides.
inline bool exchanges_nothing(const Config& config) {
  const VariableUpdate mode = config.variable_update;
  const bool local = mode == VariableUpdate::parameter_server || mode == VariableUpdate::replicated;
  return trains_nothing(config) || mode == VariableUpdate::independent ||
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
         !config.mode.eval && runs_no_step_for(config).empty();
}

inline bool evaluates(const Config& config) {
  const Mode mode = mode_of(config);
  return mode == Mode::evaluation || mode == Mode::training_and_evaluation;
}

}  // namespace cnn::bench
