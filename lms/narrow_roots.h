#pragma once

#include <cstdint>
#include <vector>

#include "lms/planning_problem.h"

namespace cnn::lms {

// Returns the roots at which the forward pass is narrowest, in its order: once such a root is
// written, the rest of the pass reads no other activation from before, or only small ones. In a
// residual network they are the outputs of the blocks.
std::vector<std::uint32_t> narrow_roots(const PlanningProblem& problem);

}  // namespace cnn::lms
