// Property tests of the lower bound: no plan beats it whatever the filters exclude, and it is
// finite whenever a plan exists.
#include <array>
#include <gtest/gtest.h>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "lms/bound.h"
#include "lms/catalog.h"
#include "lms/plan_schedule.h"
#include "lms/planned.h"
#include "runtime/error.h"
#include "tests/lms/quick_plan.h"
#include "tests/lms/random_step.h"

namespace cnn::lms {
namespace {

using tests::StepCase;

// Op types that random steps contain. The batch norm has two outputs.
constexpr std::array ops{"conv", "relu", "batch_norm", "max_pool", "add"};

// Each layer makes an image and a mask of any size, and its gradient reads one of them or both. A
// size threshold then makes candidates of only some outputs of a node.
StepCase masked_chain(std::mt19937& random) {
  StepCase c;
  std::vector<std::vector<Value>> made{{c.images()}};
  const std::size_t layers = 3 + random() % 5;
  for (std::size_t n = 0; n < layers; ++n) {
    made.push_back(c.make_all("conv", {made.back().front()},
                              {StepCase::image(1 + static_cast<std::int64_t>(random() % 5)),
                               StepCase::image(1 + static_cast<std::int64_t>(random() % 3))}));
  }
  const Value first = c.make("loss_backward", {made.back().front()});
  Value gradient = first;
  for (std::size_t n = layers; n-- > 1;) {
    std::vector<Value> in{gradient};
    const std::size_t reads = random() % 3;
    if (reads != 0) {
      in.push_back(made[n][0]);
    }
    if (reads != 1) {
      in.push_back(made[n][1]);
    }
    gradient = c.make_image("conv_backward", in, made[n][0].desc().shape[1]);
  }
  c.settle(first);
  for (double& seconds : c.costs.seconds) {
    seconds = 1 + static_cast<double>(random() % 4);
  }
  return c;
}

// Returns a random step with random filters, so that only some outputs of a node are candidates.
StepCase filtered_step(unsigned seed) {
  std::mt19937 random(seed + 4711);
  StepCase c = seed % 2 == 0 ? masked_chain(random) : tests::random_step(seed);
  constexpr double rates[] = {20, 100, 400};
  c.costs.out_bytes_per_second = rates[random() % 3];
  c.costs.in_bytes_per_second = rates[random() % 3];
  if (random() % 3 == 0) {
    c.options.included_types = {ops[random() % ops.size()], ops[random() % ops.size()]};
  } else if (random() % 2 == 0) {
    c.options.excluded_types = {ops[random() % ops.size()]};
  }
  c.options.size_threshold = random() % 2 == 0 ? 0 : 65 + random() % 256;
  constexpr Recomputation modes[] = {Recomputation::automatic, Recomputation::off,
                                     Recomputation::cheap, Recomputation::full};
  c.options.recompute = modes[random() % 4];
  c.options.within_pass = seed % 3 == 0;
  c.options.n_tensors = random() % 4 == 0 ? static_cast<std::int64_t>(random() % 4) : -1;
  const std::size_t need = c.peak(c.schedule).device_bytes;
  const std::size_t least = std::min(need, tests::min_memory_bytes(c.request()));
  c.budget.device = (least + (need - least) * (random() % 5) / 5) / alignment * alignment;
  return c;
}

// Checks that the bound for the bytes of this schedule does not exceed its time.
void expect_no_faster(StepCase c, const Schedule& schedule) {
  const Outcome outcome = outcome_of(c.request(), schedule);
  c.budget.device = outcome.device_bytes;
  c.budget.host = outcome.host_bytes;
  const Bound bound = lower_bound(c.request());
  ASSERT_LE(bound.seconds, outcome.seconds * (1 + 1e-9));
  c.options = {.n_tensors = 0, .recompute = Recomputation::off, .excluded_ops = {"."}};
  ASSERT_LE(lower_bound_of(c.request(), schedule), outcome.seconds * (1 + 1e-9)) << "of a file";
  // The last block's end is not aligned.
  ASSERT_LE(bound.min_bytes, aligned(outcome.device_bytes));
}

// Returns the number of plans that it checked.
int check_steps(unsigned first, unsigned last) {
  int plans = 0;
  for (unsigned seed = first; seed < last && !testing::Test::HasFatalFailure(); ++seed) {
    SCOPED_TRACE(seed);
    const StepCase c = filtered_step(seed);  // some may move tensors within a pass
    expect_no_faster(c, tests::quick_plan(c.request(), 500).schedule);
    ++plans;
    for (const PolicyRow& policy : policies()) {
      if (policy.name == "planned") {
        continue;  // quick_plan() covers this policy with less work
      }
      SCOPED_TRACE(std::string(policy.name));
      Plan plan;
      try {
        plan = policy.plan(c.request());
      } catch (const Error&) {
        continue;  // the policy refuses these options
      }
      expect_no_faster(c, plan.schedule);
      ++plans;
    }
  }
  return plans;
}

TEST(Bound, IsNotBeatenByAnyPolicyUnderAnyFilter) { EXPECT_GT(check_steps(0, 300), 2000); }

TEST(SlowBound, IsNotBeatenByAnyPolicyUnderAnyFilter) { EXPECT_GT(check_steps(0, 10'000), 70'000); }

}  // namespace
}  // namespace cnn::lms
