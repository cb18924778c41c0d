#pragma once

#include "runtime/program.h"

namespace cnn {

// The part of verify() that looks at what is computed, not at bytes and lanes: every node runs with
// operands as its kernel takes them, and every tensor that a step meets has the value that the
// order of the graph gives it. Throws Error.
void verify_values(const StepPlan& plan);

}  // namespace cnn
