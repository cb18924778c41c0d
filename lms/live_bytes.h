#pragma once

#include <cstddef>
#include <vector>

#include "runtime/schedule.h"

namespace cnn::lms {

struct Request;

// Bytes of the arena in use during each step of the request's schedule, as it stands: by StepId.
std::vector<std::size_t> live_bytes(const Request& request);

// Workspaces by NodeId, as plan_memory() and peak_memory() take them.
std::vector<std::size_t> workspaces_of(const Request& request);

// Whether both arenas of the schedule, placed, are within the request's budget.
bool fits(const Request& request, const Schedule& schedule);

// The last step of Lane::compute in front of this one; the step itself if there is none.
StepId compute_before(const Schedule& schedule, StepId step);

}  // namespace cnn::lms
