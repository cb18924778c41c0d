#pragma once

#include <atomic>
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

// A placed plan, and the decisions that it follows.
struct SearchedPlan {
  TensorDecisions decisions;
  PlacedPlan placed;
};

// Returns the plan with the smallest peak: no plan is known for smaller budgets.
SearchedPlan minimize_memory(const Request& request, const PlanningProblem& problem);

// A search may end at a plan that is somewhat faster than the one by live bytes that it begins
// with, since it goes on searching. It rejects those that take less than this share of its seconds,
// which are rare, so that other searches can tell what is left out before it runs.
inline constexpr double fastest_of_live = 0.9;

// Describes the plan that a search looks for.
struct SearchGoal {
  std::size_t device_bytes = 0;  // of the arena, instead of the request's
  double bound_seconds = 0;      // a lower bound of the step: a plan close to it ends the search
  // Seconds of a plan for another budget, which others may lower meanwhile; null: none. Single
  // decisions are not merged where the plan would be slower than that.
  const std::atomic<double>* useful_seconds = nullptr;
  double least_seconds = 0;  // faster plans are rejected
  Rival rival = {};          // once it wins, the search throws SearchOvertaken
};

// Searches a plan that fits by its live bytes, by simulated annealing: from simple plans, or in
// half of the time from the solution for a larger budget. larger: null for none.
Solution search_live(const Request& request, const PlanningProblem& problem, const SearchGoal& goal,
                     const Solution* larger = nullptr);

// Searches the fastest plan for one budget: places the plan that a search by live bytes has found.
// Placement takes slightly more, so the search is repeated with a lower target; where none is left,
// a plan that fits takes over as many decisions of the faster one as placement permits. smallest:
// the fallback plan. Returns a plan that fits or, if none does, the plan with the fewest bytes.
// Deterministic in its arguments.
SearchedPlan search_budget(const Request& request, const PlanningProblem& problem,
                           const SearchedPlan& smallest, Solution found, const SearchGoal& goal);

// Does the same from a plan for a smaller budget, which it only improves, in a fifth of the time.
SearchedPlan refine_plan(const Request& request, const PlanningProblem& problem,
                         const SearchedPlan& start, const SearchGoal& goal);

}  // namespace cnn::lms
