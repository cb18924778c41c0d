// Steps of random graphs with tensors inside others, moved and made again at random: whatever is
// done, on lanes that are late at random, no bit may change.
#include <algorithm>
#include <chrono>
#include <gtest/gtest.h>
#include <memory>
#include <utility>
#include <vector>

#include "runtime/executor.h"
#include "runtime/liveness.h"
#include "tests/support/joined_graphs.h"
#include "tests/support/test_graphs.h"
#include "tests/support/test_step.h"

namespace cnn {
namespace {

using tests::RandomJoins;
using tests::spread_kernels;
using tests::TestStep;

std::vector<float> joined_outcome_of(const StepPlan& plan, const CpuOptions& device,
                                     ExecutorOptions options = tests::lanes_apart) {
  TestStep step(make_program(plan, spread_kernels()), std::make_unique<CpuDevice>(device), options);
  for (int i = 0; i < 3; ++i) {
    step.run();
  }
  EXPECT_TRUE(step.canaries_are_intact());
  return step.outcome();
}

// Counts, for roots of parts, how often one is there again, brought back or made anew.
int returns_of_roots(const StepPlan& plan) {
  std::vector<int> intervals(plan.graph->tensors().size());
  for (const LiveInterval& interval : live_intervals(*plan.graph, plan.schedule)) {
    intervals[index_of(interval.tensor)] +=
        static_cast<int>(plan.graph->shares_bytes(interval.tensor));
  }
  int returns = 0;
  for (const int count : intervals) {
    returns += std::max(0, count - 1);
  }
  return returns;
}

// The result of random edits of plans.
struct Edited {
  int kept = 0, returns = 0;
};

Edited run_edited(unsigned first_seed, unsigned seeds, const CpuOptions& device,
                  ExecutorOptions options) {
  Edited edited;
  for (unsigned seed = first_seed; seed < first_seed + seeds; ++seed) {
    const StepPlan plain = make_plan(RandomJoins(seed).graph(), spread_kernels());
    const StepPlan plan = tests::with_random_edits(plain, seed, 60, edited.kept);
    edited.returns += returns_of_roots(plan);
    EXPECT_TRUE(
        tests::identical(joined_outcome_of(plain, {}), joined_outcome_of(plan, device, options)))
        << seed;
  }
  return edited;
}

TEST(JoinedStep, ChangesNoBitOnLanesThatAreLate) {
  const CpuOptions late{.copy_jitter = {.longest = std::chrono::microseconds(300), .seed = 1}};
  const Edited edited = run_edited(0, 8, late, tests::lanes_apart);
  EXPECT_GT(edited.kept, 60);
  EXPECT_GT(edited.returns, 10);
}

TEST(JoinedStep, ChangesNoBitOverALinkThatIsShared) {
  const CpuOptions slow{.link = {.out = 4e6, .in = 8e6, .both = 6e6}, .compute_on_caller = true};
  EXPECT_GT(run_edited(20, 4, slow, tests::lanes_apart).returns, 3);
}

TEST(JoinedStep, ReadsNothingThatWasFreedAndBringsBackWhatLeft) {
  const Edited edited = run_edited(40, 8, {}, {.verify = true, .max_compute_stream_copy_bytes = 0});
  EXPECT_GT(edited.kept, 60);
  EXPECT_GT(edited.returns, 10);
}

}  // namespace
}  // namespace cnn
