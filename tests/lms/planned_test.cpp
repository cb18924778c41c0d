#include "lms/planned.h"

#include <functional>
#include <gtest/gtest.h>
#include <limits>

#include "lms/bound.h"
#include "lms/catalog.h"
#include "lms/plan_schedule.h"
#include "tests/lms/problem.h"
#include "tests/lms/quick_plan.h"
#include "tests/lms/random_step.h"

namespace cnn::lms {
namespace {

using tests::min_memory_bytes;
using tests::Problem;
using tests::quick_plan;
using tests::QuickPlan;
using tests::random_step;
using tests::StepCase;

TEST(Planned, TakesTheBestStepOfUniformChains) {
  for (const tests::Fixture& fixture : tests::fixtures) {
    Problem chain = tests::uniform_chain(fixture.layers);
    chain.options.recompute = Recomputation::off;
    chain.limit(fixture.device, fixture.out, fixture.in);
    const QuickPlan plan = quick_plan(chain.request(), 100'000);
    EXPECT_LE(plan.outcome.device_bytes, chain.budget.device);
    EXPECT_NEAR(plan.outcome.seconds, fixture.seconds, 1e-9)
        << fixture.layers << " layers in " << fixture.device << ", " << fixture.out << " out, "
        << fixture.in << " in";
  }
}

// Calls check() on random steps whose budget is `tenths` tenths of the bytes that they need.
void for_random_steps(unsigned seeds, std::size_t tenths,
                      const std::function<void(StepCase&)>& check) {
  for (unsigned seed = 0; seed < seeds; ++seed) {
    SCOPED_TRACE(seed);
    StepCase c = random_step(seed);
    c.budget.device = c.peak(c.schedule).device_bytes * tenths / 10 / alignment * alignment;
    c.costs.out_bytes_per_second = seed % 3 == 0 ? 30 : 200;
    c.costs.in_bytes_per_second = seed % 2 == 0 ? 50 : 300;
    c.options.recompute = seed % 4 == 0 ? Recomputation::off : Recomputation::automatic;
    if (c.budget.device >= min_memory_bytes(c.request())) {
      check(c);
    }
  }
}

// The step keeps the loss until its end; the search does not count it.
constexpr std::size_t loss_bytes = alignment;

TEST(Planned, FitsWhereTheThriftiestPlanDoes) {
  for_random_steps(1000, 6, [](const StepCase& c) {
    const QuickPlan plan = quick_plan(c.request(), 2000);
    EXPECT_TRUE(plan.evaluation.fits);
    EXPECT_LE(c.peak(plan.schedule).device_bytes, c.budget.device + loss_bytes);
  });
}

TEST(Planned, FitsInExactlyItsFloor) {
  for_random_steps(60, 6, [](StepCase& c) {
    c.budget.device = min_feasible_bytes(c.request());
    const Outcome outcome =
        outcome_of(c.request(), find_policy("planned").plan(c.request()).schedule);
    EXPECT_LE(outcome.device_bytes, c.budget.device);
  });
}

TEST(LongPlanned, IsNeverSlowerInALargerBudget) {
  int faster = 0;
  for_random_steps(12, 6, [&](StepCase& c) {
    const std::size_t smallest = min_feasible_bytes(c.request());
    const std::size_t need = c.peak(c.schedule).device_bytes;
    double seconds = std::numeric_limits<double>::infinity();
    for (std::size_t part = 0; part <= 8; ++part) {
      c.budget.device = smallest + (need - std::min(need, smallest)) * part / 8;
      const Outcome outcome =
          outcome_of(c.request(), find_policy("planned").plan(c.request()).schedule);
      ASSERT_LE(outcome.device_bytes, c.budget.device);
      ASSERT_LE(outcome.seconds, seconds) << part;
      faster += outcome.seconds < seconds ? 1 : 0;
      seconds = outcome.seconds;
    }
  });
  EXPECT_GT(faster, 8);
}

// A caller that already has a plan wants only a faster one.
TEST(Planned, SearchesNothingWhereNoPlanCanBeOfUse) {
  for_random_steps(12, 6, [](StepCase& c) {
    Request request = c.request();
    const Plan free = find_policy("planned").plan(request);
    const double seconds = outcome_of(request, free.schedule, free.enough).seconds;
    request.useful_seconds = 1.01 * seconds;
    const Plan same = find_policy("planned").plan(request);
    EXPECT_EQ(outcome_of(request, same.schedule, same.enough).seconds, seconds);
    request.useful_seconds = lower_bound(request).seconds;
    const Plan least = find_policy("planned").plan(request);
    EXPECT_EQ(outcome_of(request, least.schedule, least.enough).device_bytes,
              min_feasible_bytes(c.request()));
  });
}

TEST(LongPlanned, LeavesNoMoreThanTheHostTakes) {
  int less = 0;
  for_random_steps(60, 6, [&](StepCase& c) {
    const Outcome free = outcome_of(c.request(), find_policy("planned").plan(c.request()).schedule);
    c.budget.host = free.host_bytes / 2 / alignment * alignment;
    // Tensors that cannot be recomputed must be swapped out.
    if (c.options.recompute == Recomputation::off ||
        min_feasible_bytes(c.request()) > c.budget.device) {
      return;
    }
    const Outcome outcome =
        outcome_of(c.request(), find_policy("planned").plan(c.request()).schedule);
    EXPECT_LE(outcome.host_bytes, c.budget.host);
    EXPECT_LE(outcome.device_bytes, c.budget.device);
    less += outcome.host_bytes < free.host_bytes ? 1 : 0;
  });
  EXPECT_GT(less, 0);
}

TEST(Planned, IsNoFasterThanItsBound) {
  for_random_steps(1000, 6, [](StepCase& c) {
    const QuickPlan plan = quick_plan(c.request(), 2000);
    c.budget.device = std::max(c.budget.device, plan.outcome.device_bytes);
    const Bound bound = lower_bound(c.request());
    double compute = 0;
    for (const double seconds : c.costs.seconds) {
      compute += seconds;
    }
    EXPECT_LE(bound.min_bytes, plan.outcome.device_bytes);
    EXPECT_LE(bound.seconds, plan.outcome.seconds * (1 + 1e-9));
    EXPECT_LE(bound.seconds, bound.seconds_swap_only * (1 + 1e-9));
    EXPECT_GE(bound.seconds, compute * (1 - 1e-9));
  });
}

// Returns the search's estimate of the step time; all calls get the same amount of work.
double seconds_of(const StepCase& c) { return quick_plan(c.request(), 5000).evaluation.seconds; }

TEST(Planned, IsNoSlowerWithMoreMemoryOrAFasterLink) {
  constexpr double much = 1.01;
  for_random_steps(300, 6, [](StepCase& c) {
    const double seconds = seconds_of(c);
    c.costs.out_bytes_per_second *= 2;
    const double out = seconds_of(c);
    EXPECT_LE(out, seconds * much) << "the link is twice as fast outwards";
    c.costs.in_bytes_per_second *= 2;
    const double both = seconds_of(c);
    EXPECT_LE(both, out * much) << "the link is also twice as fast inwards";
    c.budget.device += c.budget.device / 4;
    EXPECT_LE(seconds_of(c), both * much) << "there is also a quarter more memory";
  });
}

}  // namespace
}  // namespace cnn::lms
