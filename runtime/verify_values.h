#pragma once

#include "runtime/program.h"

namespace cnn {

// The part of verify() about values, not bytes and lanes: every node runs with operands as its
// kernel takes them, and every tensor that a step reads has the value that the graph's order gives
// it. Throws Error.
void verify_values(const StepPlan& plan);

}  // namespace cnn
