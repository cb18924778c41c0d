#pragma once

#include <cstddef>

#include "lms/plan_schedule.h"
#include "lms/planning_problem.h"
#include "lms/policy.h"
#include "lms/search.h"
#include "runtime/schedule.h"

namespace cnn::lms {

// A schedule, and its memory and time as placed.
struct PlacedPlan {
  Schedule schedule;
  Outcome outcome;
  std::size_t enough = 0;  // of plan_memory(), for this placement
};

// The plan with the smallest peak: no plan is known for smaller budgets.
struct SmallestPlan {
  TensorDecisions decisions;
  PlacedPlan placed;
};
SmallestPlan minimize_memory(const Request& request, const PlanningProblem& problem);

// Searches the fastest plan for one budget: simulated annealing decides by live bytes; their
// placement takes slightly more, so the search then repeats with a lower target. device_bytes: of
// the arena; ignores the request's budget. smallest: the fallback plan. Returns a plan that fits
// or, if none does, the plan with the fewest bytes. Deterministic in its arguments.
PlacedPlan search_budget(const Request& request, const PlanningProblem& problem,
                         const SmallestPlan& smallest, std::size_t device_bytes);

}  // namespace cnn::lms
