#pragma once

#include "lms/policy.h"
#include "lms/pressure.h"

namespace cnn::lms {

// Returns seconds that the compute lane waits or recomputes in any plan within the request's
// budget, because two steps shortly after one another need more memory than there is: tensors that
// cannot be on the device while the first one runs must be copied back or recomputed between both.
// Such windows of steps do not overlap, so that their seconds add up.
double seconds_in_windows(const Request& request, const Pressure& pressure, bool repeats);

}  // namespace cnn::lms
