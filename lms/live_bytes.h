#pragma once

#include <cstddef>
#include <vector>

#include "runtime/schedule.h"

namespace cnn::lms {

struct Request;

// Returns the arena bytes in use during each step of the request's unedited schedule, by StepId.
std::vector<std::size_t> live_bytes(const Request& request);

// Returns workspaces by NodeId, for plan_memory() and peak_memory().
std::vector<std::size_t> workspaces_of(const Request& request);

// Returns whether both arenas of the placed schedule are within the request's budget, or will be
// once with_disk_tier() has let swapped tensors go on to the disk.
bool fits(const Request& request, const Schedule& schedule);

// Returns the last compute-lane step before this one; the step itself if there is none.
StepId compute_before(const Schedule& schedule, StepId step);

}  // namespace cnn::lms
