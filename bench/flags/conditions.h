#pragma once

#include "bench/flags/config.h"
#include "bench/flags/sizes.h"

namespace cnn::bench {

// What rows of the flag table ask of a configuration to say where their flag is idle.

inline bool on_cpu(const Config& config) { return config.device == DeviceKind::cpu; }

inline bool simulates(const Config& config) { return config.gpu.simulate.has_value(); }

inline bool on_synthetic_data(const Config& config) { return !config.data.dir; }

inline bool on_real_data(const Config& config) { return !on_synthetic_data(config); }

inline bool evaluates(const Config& config) {
  const Mode mode = mode_of(config);
  return mode == Mode::evaluation || mode == Mode::training_and_evaluation;
}

}  // namespace cnn::bench
