#pragma once

#include <cstddef>

#include "lms/evaluate.h"
#include "lms/expanded_schedule.h"
#include "lms/planning_problem.h"
#include "lms/policy.h"
#include "runtime/memory_plan.h"
#include "runtime/schedule.h"

namespace cnn::lms {

// Memory and time of a schedule: bytes as placed in both arenas, and simulated seconds. enough: as
// in plan_memory().
struct Outcome {
  std::size_t device_bytes = 0, host_bytes = 0;
  double seconds = 0;
};
Outcome outcome_of(const Request& request, const Schedule& schedule, std::size_t enough = 0);
// Returns the same for a schedule whose placement is known.
Outcome outcome_of(const Request& request, const Schedule& schedule, const MemoryPlan& memory);

// Returns the schedule of an expanded step with its copies, their waits, and the waits of the
// request's sync mode.
Schedule schedule_of(const Request& request, const PlanningProblem& problem,
                     const ExpandedSchedule& expanded, const Evaluator& evaluated);

}  // namespace cnn::lms
