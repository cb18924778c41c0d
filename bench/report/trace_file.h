#pragma once

#include <string>

#include "runtime/timeline.h"

namespace cnn::bench {

// Writes a step's timeline as a Chrome trace; makes the folder if it is missing. Throws Error if it
// cannot.
void write_trace(const std::string& path, const StepPlan& plan, const Timeline& timeline);

}  // namespace cnn::bench
