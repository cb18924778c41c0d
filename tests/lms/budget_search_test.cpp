#include "lms/budget_search.h"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <gtest/gtest.h>
#include <variant>

#include "lms/plan_schedule.h"
#include "lms/planning_problem.h"
#include "lms/search.h"
#include "tests/lms/problem.h"

namespace cnn::lms {
namespace {

using tests::uniform_chain;
using tests::unit;

// Searches by live bytes, then places what was found.
SearchedPlan search_and_place(const Request& request, const PlanningProblem& problem,
                              const SearchedPlan& smallest, const SearchGoal& goal) {
  return search_budget(request, problem, smallest, search_live(request, problem, goal), goal);
}

class BudgetSearchOfTenLayers : public ::testing::Test {
 protected:
  BudgetSearchOfTenLayers() { chain_.limit(10, 1, 1); }

  PlacedPlan search(std::size_t device_units) {
    const PlanningProblem problem = planning_problem(chain_.request());
    return search_and_place(chain_.request(), problem, minimize_memory(chain_.request(), problem),
                            {.device_bytes = device_units * unit})
        .placed;
  }
  tests::Problem& chain() { return chain_; }

 private:
  tests::Problem chain_ = uniform_chain(10);
};

TEST_F(BudgetSearchOfTenLayers, LeavesTheScheduleAsItIsWhereItFits) {
  const PlacedPlan plan = search(10);
  EXPECT_EQ(plan.schedule.steps.size(), chain().schedule.steps.size());
  EXPECT_EQ(plan.outcome.seconds, 30);
}

TEST_F(BudgetSearchOfTenLayers, FindsPlacedPlansWithinEveryBudget) {
  for (const std::size_t units : {9, 6, 4, 3}) {
    const PlacedPlan plan = search(units);
    EXPECT_LE(plan.outcome.device_bytes, units * unit) << units;
    EXPECT_GE(plan.outcome.seconds, 30) << units;
    const Outcome placed = outcome_of(chain().request(), plan.schedule, plan.enough);
    EXPECT_EQ(plan.outcome.device_bytes, placed.device_bytes) << units;
    EXPECT_EQ(plan.outcome.seconds, placed.seconds) << units;
  }
  EXPECT_EQ(search(4).outcome.seconds, 30) << "copies at a unit per second cost nothing here";
}

TEST_F(BudgetSearchOfTenLayers, KeepsToTheBytesOfTheHost) {
  chain().budget.host = 3 * unit;
  const PlacedPlan plan = search(4);
  EXPECT_LE(plan.outcome.device_bytes, 4 * unit);
  EXPECT_LE(plan.outcome.host_bytes, 3 * unit);
  EXPECT_GT(plan.outcome.seconds, 30) << "recomputation lengthens the step";
}

TEST_F(BudgetSearchOfTenLayers, RunsNothingAgainWhereThatIsOff) {
  chain().options.recompute = Recomputation::off;
  chain().budget.host = 0;
  const PlacedPlan plan = search(4);
  std::size_t computes = 0;
  for (const Step& step : plan.schedule.steps) {
    computes += std::holds_alternative<Compute>(step.action) ? 1 : 0;
  }
  EXPECT_EQ(computes, chain().graph->nodes().size());
  EXPECT_EQ(plan.outcome.device_bytes, 10 * unit) << "nothing may be swapped either";
}

TEST_F(BudgetSearchOfTenLayers, ReturnsTheSmallestPlanWhereNothingFits) {
  const PlanningProblem problem = planning_problem(chain().request());
  const SearchedPlan smallest = minimize_memory(chain().request(), problem);
  const PlacedPlan plan =
      search_and_place(chain().request(), problem, smallest, {.device_bytes = unit}).placed;
  EXPECT_GT(plan.outcome.device_bytes, unit);
  EXPECT_EQ(plan.outcome.device_bytes, smallest.placed.outcome.device_bytes);
}

TEST_F(BudgetSearchOfTenLayers, ImprovesAPlanOfASmallerBudgetWhereThereIsMore) {
  chain().limit(10, 0.25, 0.25);
  const PlanningProblem problem = planning_problem(chain().request());
  const SearchedPlan smallest = minimize_memory(chain().request(), problem);
  double seconds = smallest.placed.outcome.seconds;
  for (const std::size_t units : {3, 5, 7, 9}) {
    const SearchedPlan refined =
        refine_plan(chain().request(), problem, smallest, {.device_bytes = units * unit});
    EXPECT_LE(refined.placed.outcome.device_bytes, units * unit);
    EXPECT_LT(refined.placed.outcome.seconds, seconds) << units;
    seconds = refined.placed.outcome.seconds;
    const Solution same = lms::search(
        problem, {.device_bytes = units * unit, .work = 0, .start = &refined.decisions});
    EXPECT_TRUE(same.evaluation.fits) << "these decisions are those of the plan";
  }
}

TEST_F(BudgetSearchOfTenLayers, MovesLessOfAFastPlanWhereThereIsMore) {
  const auto moved = [](const SearchedPlan& plan) {
    return std::ranges::count_if(plan.decisions,
                                 [](TensorDecision d) { return d != TensorDecision::keep; });
  };
  const PlanningProblem problem = planning_problem(chain().request());
  const SearchedPlan smallest = minimize_memory(chain().request(), problem);
  const SearchGoal four{.device_bytes = 4 * unit, .bound_seconds = 30};
  const SearchedPlan plan = search_budget(chain().request(), problem, smallest,
                                          search_live(chain().request(), problem, four), four);
  ASSERT_EQ(plan.placed.outcome.seconds, 30);
  const SearchedPlan refined = refine_plan(chain().request(), problem, plan,
                                           {.device_bytes = 8 * unit, .bound_seconds = 30});
  EXPECT_EQ(refined.placed.outcome.seconds, 30);
  EXPECT_LE(refined.placed.outcome.device_bytes, 8 * unit);
  EXPECT_LE(moved(refined), 3) << "two units are missing";
  EXPECT_GE(moved(plan), 6) << "six units are";
}

TEST_F(BudgetSearchOfTenLayers, FitsASmallerBudgetFromAPlanForALargerOne) {
  chain().limit(10, 0.25, 0.25);
  const PlanningProblem problem = planning_problem(chain().request());
  Solution found = search_live(chain().request(), problem, {.device_bytes = 9 * unit});
  for (std::size_t units = 8; units >= 3; --units) {
    Solution below =
        search_live(chain().request(), problem, {.device_bytes = units * unit}, &found);
    EXPECT_TRUE(below.evaluation.fits) << units;
    EXPECT_GE(below.evaluation.seconds, found.evaluation.seconds) << units;
    found = std::move(below);
  }
}

// The search leaves out only plans that are slower than the one of the other budget.
TEST_F(BudgetSearchOfTenLayers, LeavesOutABudgetWhoseBestPlansAreFarSlowerThanAnother) {
  const PlanningProblem problem = planning_problem(chain().request());
  const SearchedPlan smallest = minimize_memory(chain().request(), problem);
  SearchGoal goal{.device_bytes = 4 * unit};
  const Solution found = search_live(chain().request(), problem, goal);
  const std::atomic<double> slow = 2 * found.evaluation.seconds;
  const std::atomic<double> fast = found.evaluation.seconds / 2;
  goal.useful_seconds = &slow;
  const SearchedPlan searched = search_budget(chain().request(), problem, smallest, found, goal);
  EXPECT_NE(searched.decisions, smallest.decisions);
  goal.useful_seconds = &fast;
  EXPECT_GT(searched.placed.outcome.seconds, fast);
  EXPECT_EQ(search_budget(chain().request(), problem, smallest, found, goal).decisions,
            smallest.decisions);
}

TEST_F(BudgetSearchOfTenLayers, RejectsPlansThatAreFasterThanItMayReturn) {
  chain().budget.host = 3 * unit;
  const Request request = chain().request();
  const PlanningProblem problem = planning_problem(request);
  const SearchedPlan smallest = minimize_memory(request, problem);
  SearchGoal goal{.device_bytes = 4 * unit};
  const double fastest = search_and_place(request, problem, smallest, goal).placed.outcome.seconds;
  goal.least_seconds = fastest + 0.5;
  const SearchedPlan slower = search_and_place(request, problem, smallest, goal);
  EXPECT_GE(slower.placed.outcome.seconds, goal.least_seconds);
  const SearchedPlan refined =
      refine_plan(request, problem, slower, {.device_bytes = 5 * unit, .least_seconds = 1e9});
  EXPECT_EQ(refined.placed.outcome.seconds, slower.placed.outcome.seconds);
}

TEST_F(BudgetSearchOfTenLayers, EndsOnceAnotherPlanIsFasterThanItsBound) {
  const PlanningProblem problem = planning_problem(chain().request());
  const SearchedPlan smallest = minimize_memory(chain().request(), problem);
  const std::atomic<double> known = 30;
  SearchGoal goal{.device_bytes = 4 * unit, .rival = {.seconds = &known, .bound_seconds = 29}};
  const Solution found = search_live(chain().request(), problem, goal);
  const SearchedPlan plan = search_budget(chain().request(), problem, smallest, found, goal);
  goal.rival.bound_seconds = 31;
  EXPECT_THROW(search_live(chain().request(), problem, goal), SearchOvertaken);
  EXPECT_THROW(search_live(chain().request(), problem, goal, &found), SearchOvertaken);
  EXPECT_THROW(search_budget(chain().request(), problem, smallest, found, goal), SearchOvertaken);
  chain().limit(10, 0.25, 0.25);  // where the plan for 4 units is not as fast as it could be
  EXPECT_THROW(refine_plan(chain().request(), problem, plan, goal), SearchOvertaken);
}

TEST_F(BudgetSearchOfTenLayers, FindsTheSmallestPeak) {
  const PlanningProblem problem = planning_problem(chain().request());
  const SearchedPlan smallest = minimize_memory(chain().request(), problem);
  EXPECT_EQ(smallest.placed.outcome.device_bytes, 2 * unit)
      << "a layer reads one unit and makes one";
  EXPECT_GT(std::ranges::count_if(smallest.decisions,
                                  [](TensorDecision d) { return d != TensorDecision::keep; }),
            0);
}

}  // namespace
}  // namespace cnn::lms
