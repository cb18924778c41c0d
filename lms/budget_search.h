#pragma once

#include <cstddef>

#include "lms/plan_schedule.h"
#include "lms/planning_problem.h"
#include "lms/policy.h"
#include "lms/search.h"
#include "runtime/schedule.h"

namespace cnn::lms {

// A schedule, and what it takes as placed in memory.
struct PlacedPlan {
  Schedule schedule;
  Outcome outcome;
  std::size_t enough = 0;  // of plan_memory(), for these bytes
};

// The plan with the smallest peak: no budget below its bytes has a plan that is known.
struct SmallestPlan {
  TensorDecisions decisions;
  PlacedPlan placed;
};
SmallestPlan minimize_memory(const Request& request, const PlanningProblem& problem);

// Searches the fastest plan for one budget: decisions by simulated annealing on live bytes, then
// their placement, which takes a little more, so that the search goes on with a lower target.
// device_bytes: of the arena; the budget of the request is not asked. smallest: where nothing else
// fits, its plan is taken. Returns what fits or, where nothing does, what takes the fewest bytes.
// Depends on nothing but its arguments.
PlacedPlan search_budget(const Request& request, const PlanningProblem& problem,
                         const SmallestPlan& smallest, std::size_t device_bytes);

}  // namespace cnn::lms
