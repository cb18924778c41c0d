#include "lms/eviction.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lms/live_bytes.h"
#include "lms/policies.h"
#include "lms/stash.h"
#include "lms/summary.h"
#include "runtime/memory_plan.h"
#include "tests/lms/chain_step.h"
#include "tests/lms/random_step.h"

namespace cnn::lms {
namespace {

using ::testing::ElementsAre;
using tests::chain_step;
using tests::lines;
using tests::random_step;
using tests::StepCase;
using tests::texts;

StepCase chain_within(std::size_t layers, std::size_t images) {
  StepCase c = chain_step(layers);
  c.budget.device = images * 64;
  return c;
}

TEST(LiveBytes, CountWhatIsInUseInEachStep) {
  const StepCase c = chain_step(2);
  std::vector<std::size_t> images = live_bytes(c.request());
  for (std::size_t& bytes : images) {
    bytes /= 64;
  }
  EXPECT_THAT(images, ElementsAre(1, 2, 3, 3, 3, 2, 2, 2));
}

TEST(LiveBytes, CountBytesThatAreTakenOverOnce) {
  for (unsigned seed = 0; seed < 50; ++seed) {
    const StepCase c = random_step(seed);
    EXPECT_EQ(std::ranges::max(live_bytes(c.request())), c.peak(c.schedule).device_bytes) << seed;
  }
}

TEST(Eviction, DoesNothingWhereTheStepFits) {
  for (const Policy policy : {reclaim, caffe}) {
    const StepCase c = chain_within(5, 6);
    EXPECT_FALSE(summarize(*c.graph, policy(c.request()).schedule).moves());
  }
}

TEST(Eviction, LetsNoMoreTensorsGoThanAllowed) {
  StepCase c = chain_within(20, 4);
  c.options.n_tensors = 3;
  EXPECT_EQ(summarize(*c.graph, reclaim(c.request()).schedule).swapped_tensors, 3U);
}

// Returns whether each step fits if all tensors that it does not use are evicted.
bool can_fit(const StepCase& c) {
  const std::vector<std::size_t> live = live_bytes(c.request());
  const std::vector<Stashed> tensors = candidates(c.request());
  for (std::uint32_t s = 0; s < live.size(); ++s) {
    std::size_t bytes = live[s];
    const bool serves_next = c.schedule.steps[s].lane != Lane::compute;
    for (const Stashed& tensor : tensors) {
      const bool used = std::ranges::binary_search(tensor.uses, StepId{s});
      if (tensor.made < StepId{s} && StepId{s} < tensor.last && !used && !serves_next) {
        bytes -= aligned(tensor.bytes);
      }
    }
    if (bytes > c.budget.device) {
      return false;
    }
  }
  return true;
}

TEST(Eviction, MeetsEveryBudgetThatCanBeMet) {
  int met = 0;
  for (unsigned seed = 0; seed < 300; ++seed) {
    StepCase c = random_step(seed);
    c.budget.device = c.peak(c.schedule).device_bytes * (5 + seed % 5) / 10;
    if (can_fit(c)) {
      ++met;
      EXPECT_LE(c.peak(reclaim(c.request()).schedule).device_bytes, c.budget.device) << seed;
      EXPECT_LE(c.peak(caffe(c.request()).schedule).device_bytes, c.budget.device) << seed;
    }
  }
  EXPECT_GT(met, 60);
}

}  // namespace
}  // namespace cnn::lms
