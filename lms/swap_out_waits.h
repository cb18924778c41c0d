#pragma once

#include "lms/policy.h"

namespace cnn::lms {

// Adds waits for swap-outs to the plan of a policy, so that no step waits for a copy while
// there is memory beside what is still leaving.
//
// If no step waits for an Offload, the first step that reuses its bytes stalls until the copy has
// ended, even while other parts of the arena are free. This function keeps the bytes reserved until
// a step finds no room in the budget; that step then waits for as many of the oldest copies as it
// needs. A copy that ends earlier is awaited by the first compute step that starts after its end,
// which costs nothing. If the result does not fit after placement, the function tries again with
// less than the budget. Waits of the policy stay. Returns the unchanged plan if nothing faster
// fits.
Plan with_swap_out_waits(const Request& request, Plan plan);

}  // namespace cnn::lms
