#pragma once

#include <algorithm>
#include <cstddef>
#include <optional>

#include "lms/evaluate.h"
#include "lms/expanded_schedule.h"
#include "lms/plan_schedule.h"
#include "lms/planned.h"
#include "lms/planning_problem.h"
#include "lms/policy.h"
#include "lms/search.h"

namespace cnn::tests {

struct QuickPlan {
  Schedule schedule;
  lms::Outcome outcome;        // placed, linked, simulated
  lms::Evaluation evaluation;  // as the search sees it
};

// Runs the default policy once, with a search that looks at so many steps only: for tests of
// many plans.
inline QuickPlan quick_plan(const lms::Request& request, std::size_t work) {
  const lms::PlanningProblem problem = planning_problem(request);
  const std::size_t target = request.budget.device;
  const lms::Solution found =
      search(problem, {.device_bytes = target,
                       .swaps = request.budget.host > 0,
                       .drops = request.options.recompute != lms::Recomputation::off,
                       .work = work});
  lms::ScheduleExpander expander(problem);
  lms::Evaluator evaluator(problem, target);
  const lms::ExpandedSchedule& expanded = expander.expand(found.decisions);
  const lms::Evaluation evaluation = evaluator.evaluate(expanded);
  evaluator.tighten(expanded, 0);
  Schedule schedule = schedule_of(request, problem, expanded, evaluator);
  const lms::Outcome outcome = outcome_of(request, schedule);
  return {std::move(schedule), outcome, evaluation};
}

// Bytes that are live at the peak of the smallest of the plans that treat all tensors alike.
inline std::size_t min_memory_bytes(const lms::Request& request) {
  const lms::PlanningProblem problem = planning_problem(request);
  lms::ScheduleExpander expander(problem);
  lms::Evaluator evaluator(problem, 0);
  std::size_t least = ~std::size_t{0};
  using lms::TensorDecision;
  for (const TensorDecision decision :
       {TensorDecision::keep, TensorDecision::swap, TensorDecision::drop,
        TensorDecision::drop_often, TensorDecision::swap_often}) {
    lms::TensorDecisions decisions(problem.roots.size(), TensorDecision::keep);
    for (std::size_t r = 0; r < decisions.size(); ++r) {
      const lms::Root& root = problem.roots[r];
      const bool possible = lms::is_swapped(decision) ? request.budget.host > 0 : root.may_drop;
      decisions[r] = root.may_leave && possible ? decision : TensorDecision::keep;
    }
    least = std::min(least, evaluator.evaluate(expander.expand(decisions)).peak);
  }
  return least;
}

}  // namespace cnn::tests
