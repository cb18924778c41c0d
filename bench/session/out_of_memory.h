#pragma once

#include <cstddef>
#include <string>

#include "runtime/program.h"

namespace cnn::bench {

// The line with which TensorFlow ends where an allocation fails, for scripts that look for it: of
// the first tensor of the step that lives beyond `arena_bytes`, else of the largest. on_gpu: which
// device it names.
std::string tensorflow_oom_line(const StepPlan& plan, std::size_t arena_bytes, bool on_gpu);

}  // namespace cnn::bench
