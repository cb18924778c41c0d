#pragma once

#include <cstddef>

#include "lms/policy.h"

namespace cnn::lms {

// Returns the arena bytes of the plan with the smallest peak, as placed: every larger budget has a
// plan.
std::size_t min_feasible_bytes(const Request& request);

}  // namespace cnn::lms
