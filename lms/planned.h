#pragma once

#include <cstddef>

#include "lms/policy.h"

namespace cnn::lms {

// Bytes of the arena that the plan with the smallest peak takes, as placed: any budget from there
// on has a plan.
std::size_t min_feasible_bytes(const Request& request);

}  // namespace cnn::lms
