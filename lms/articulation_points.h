#pragma once

#include <cstdint>
#include <vector>

#include "lms/planning_problem.h"

namespace cnn::lms {

// Returns the articulation points of the forward pass, in its order: once such a root is written,
// the rest of the pass reads no other activation from before, or only small ones. They are what
// gradient checkpointing keeps; in a residual network, the outputs of the blocks.
std::vector<std::uint32_t> articulation_points(const PlanningProblem& problem);

}  // namespace cnn::lms
