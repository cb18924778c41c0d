#pragma once

#include "lms/policy.h"
#include "runtime/schedule.h"

namespace cnn::lms {

// Returns the schedule with a third tier: where swapped tensors take more host memory than the
// budget has, those with the longest time between leaving and returning go on from the host to the
// disk (Store) and come back ahead of their Fetch (Load). That is Belady's rule of the farthest
// next use, and it leaves the disk the most time. A Load comes as early, and the bytes of a Store
// are awaited as late, as host memory permits. Returns the schedule unchanged where the host holds
// all swapped tensors, where the budget has no disk, or where even that does not suffice.
Schedule with_disk_tier(const Request& request, Schedule schedule);

}  // namespace cnn::lms
