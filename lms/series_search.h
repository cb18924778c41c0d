#pragma once

#include <cstddef>

#include "lms/budget_search.h"
#include "lms/planning_problem.h"
#include "lms/policy.h"

namespace cnn::lms {

// Returns the fastest plan that the searches for the budgets of one series find within the
// request's budget; `smallest`, which is the one of minimize_memory(), if none is faster. A
// function of its arguments alone, though the searches run on all processors.
//
// More memory is never slower, by construction. Searches are heuristic, so a search for a larger
// budget may end at a slower plan. They run only for budgets of one fixed series, which begins at
// the smallest feasible budget and depends on no other, and the plan for a budget is the fastest of
// all plans of the series up to it. Where plans of two near neighbours differ far, the series has
// more budgets between both. A budget whose lower bound is not below the fastest plan so far
// cannot have a faster plan and is skipped, with all smaller ones.
//
// A search that starts near the smallest budget begins with plans that are many times slower than
// the best one, and ends at a poor plan. So it goes there from above: from the largest of the near
// budgets, where the search is easy, down to each smaller one from the plan for the one above.
PlacedPlan fastest_of_series(const Request& request, const PlanningProblem& problem,
                             const SearchedPlan& smallest, std::size_t threads);

}  // namespace cnn::lms
