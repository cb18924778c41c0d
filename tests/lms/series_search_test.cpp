#include "lms/series_search.h"

#include <cstddef>
#include <gtest/gtest.h>

#include "lms/bound.h"
#include "lms/plan_schedule.h"
#include "tests/lms/random_step.h"

namespace cnn::lms {
namespace {

using tests::random_step;
using tests::StepCase;

// Calls check() on random steps with less memory than they need and the smallest plan.
template <typename Check>
void for_tight_steps(unsigned seeds, Check check) {
  for (unsigned seed = 0; seed < seeds; ++seed) {
    SCOPED_TRACE(seed);
    StepCase c = random_step(seed);
    c.costs.out_bytes_per_second = seed % 3 == 0 ? 30 : 200;
    c.costs.in_bytes_per_second = seed % 2 == 0 ? 50 : 300;
    const PlanningProblem problem = planning_problem(c.request());
    const SearchedPlan smallest = minimize_memory(c.request(), problem);
    const std::size_t floor = smallest.placed.outcome.device_bytes;
    const std::size_t need = c.peak(c.schedule).device_bytes;
    c.budget.device = floor + (need - std::min(need, floor)) * (seed % 4) / 4;
    check(c, problem, smallest);
  }
}

TEST(SeriesSearch, FindsTheSamePlanOnAnyNumberOfThreads) {
  int faster = 0;
  for_tight_steps(
      24, [&](const StepCase& c, const PlanningProblem& problem, const SearchedPlan& smallest) {
        const PlacedPlan alone = fastest_of_series(c.request(), problem, smallest, 1);
        for (const std::size_t threads : {2, 5, 16}) {
          const PlacedPlan plan = fastest_of_series(c.request(), problem, smallest, threads);
          EXPECT_EQ(plan.outcome.seconds, alone.outcome.seconds) << threads;
          EXPECT_EQ(plan.outcome.device_bytes, alone.outcome.device_bytes) << threads;
          ASSERT_EQ(plan.schedule.steps.size(), alone.schedule.steps.size()) << threads;
          for (std::size_t s = 0; s < plan.schedule.steps.size(); ++s) {
            const Step &one = plan.schedule.steps[s], &other = alone.schedule.steps[s];
            EXPECT_EQ(to_string(*c.graph, one.action), to_string(*c.graph, other.action)) << s;
            EXPECT_EQ(one.after, other.after) << s;
          }
        }
        faster += alone.outcome.seconds < smallest.placed.outcome.seconds ? 1 : 0;
      });
  EXPECT_GT(faster, 12);
}

TEST(SeriesSearch, KeepsToTheBudgetAndItsBound) {
  for_tight_steps(
      24, [&](const StepCase& c, const PlanningProblem& problem, const SearchedPlan& smallest) {
        const PlacedPlan plan = fastest_of_series(c.request(), problem, smallest, 2);
        EXPECT_LE(plan.outcome.device_bytes, c.budget.device);
        EXPECT_LE(plan.outcome.seconds, smallest.placed.outcome.seconds);
        EXPECT_GE(plan.outcome.seconds, lower_bound(c.request()).seconds * (1 - 1e-9));
        const Outcome again = outcome_of(c.request(), plan.schedule, plan.enough);
        EXPECT_EQ(plan.outcome.seconds, again.seconds);
        EXPECT_EQ(plan.outcome.device_bytes, again.device_bytes);
      });
}

TEST(SeriesSearch, ReturnsTheSmallestPlanForSmallerBudgets) {
  for_tight_steps(4,
                  [&](StepCase& c, const PlanningProblem& problem, const SearchedPlan& smallest) {
                    c.budget.device = smallest.placed.outcome.device_bytes - alignment;
                    const PlacedPlan plan = fastest_of_series(c.request(), problem, smallest, 2);
                    EXPECT_EQ(plan.outcome.device_bytes, smallest.placed.outcome.device_bytes);
                    EXPECT_EQ(plan.outcome.seconds, smallest.placed.outcome.seconds);
                  });
}

}  // namespace
}  // namespace cnn::lms
