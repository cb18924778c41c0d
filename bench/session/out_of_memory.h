#pragma once

#include <cstddef>
#include <string>

#include "runtime/program.h"

namespace cnn::bench {

// Returns the line that TensorFlow prints when an allocation fails, for scripts that search for it:
// it names the step's first tensor placed beyond `arena_bytes`, else the largest tensor. on_gpu:
// the device that it names.
std::string tensorflow_oom_line(const StepPlan& plan, std::size_t arena_bytes, bool on_gpu);

}  // namespace cnn::bench
