#pragma once

#include "lms/policy.h"

namespace cnn::lms {

// Adds waits for swap-outs to the plan of a policy, so that no step waits for a copy while
// there is memory beside what is still leaving.
//
// The bytes of an Offload that no step waits for belong to whatever takes them first, which then
// stalls until the copy has ended, however much of the arena is idle. Here they stay reserved until
// a step finds no room beside them in the budget, which waits for as many of the oldest copies as
// it takes; and a copy that ends before is waited for by the first compute step that starts later,
// which costs nothing. Where that does not fit once it is placed, less than the budget is counted
// on. Waits of the policy stay. Returns the plan as it is where nothing faster fits.
Plan with_swap_out_waits(const Request& request, Plan plan);

}  // namespace cnn::lms
