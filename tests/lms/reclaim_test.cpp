#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lms/live_bytes.h"
#include "lms/policies.h"
#include "lms/summary.h"
#include "tests/lms/chain_step.h"
#include "tests/lms/random_step.h"

namespace cnn::lms {
namespace {

using ::testing::ElementsAre;
using tests::lines;
using tests::StepCase;
using tests::texts;

StepCase reclaimed_chain(std::size_t layers, std::size_t images) {
  StepCase c = tests::chain_step(layers);
  c.budget.device = images * 64;
  return c;
}

TEST(Reclaim, TakesBytesWhenTheyAreNeededAndCopiesBackOnDemand) {
  const StepCase c = reclaimed_chain(5, 4);
  const Plan plan = reclaim(c.request());
  EXPECT_THAT(texts(*c.graph, plan.schedule),
              ElementsAre("conv#0", "conv#1", "offload conv#0", "conv#2", "offload conv#1",
                          "conv#3", "conv#4 <2", "loss_backward#5 <4", "conv_backward_weights#6",
                          "descend#7", "conv_backward_data#8", "conv_backward_weights#9",
                          "descend#10", "conv_backward_data#11", "fetch conv#1 <13",
                          "conv_backward_weights#12", "descend#13", "conv_backward_data#14",
                          "fetch conv#0 <17", "conv_backward_weights#15", "descend#16",
                          "conv_backward_data#17", "conv_backward_weights#18", "descend#19"));
  EXPECT_THAT(lines(plan), ElementsAre("Reclaimed 0.0 GiB: reclaim_one 2, reclaim_fragments 0"));
  EXPECT_EQ(plan.reclaims.value().ones, 2U);
  EXPECT_EQ(plan.reclaims.value().alls, 0U);
}

TEST(Reclaim, SaysThatItReclaimedNothing) {
  const StepCase c = reclaimed_chain(5, 6);
  EXPECT_THAT(lines(reclaim(c.request())),
              ElementsAre("Reclaimed 0.0 GiB: reclaim_one 0, reclaim_fragments 0"));
}

// Sizes differ, so all gaps between blocks can be too small although their sum is large enough.
TEST(Reclaim, FitsWhereAReplayWithFewerBytesDoes) {
  std::size_t fitted = 0;
  for (unsigned seed = 0; seed < 200; ++seed) {
    StepCase c = tests::random_step(seed);
    c.budget.device = c.peak(c.schedule).device_bytes * (5 + seed % 5) / 10;
    const Plan plan = reclaim(c.request());
    StepCase less = tests::random_step(seed);
    less.budget.device = c.budget.device - c.budget.device / 64;
    const Plan smaller = reclaim(less.request());
    if (fits(c.request(), smaller.schedule)) {
      EXPECT_TRUE(fits(c.request(), plan.schedule)) << seed;
      ++fitted;
    }
  }
  EXPECT_GT(fitted, 30U);
}

TEST(Reclaim, CountsNeedsThatNoSingleTensorMet) {
  std::size_t with_alls = 0;
  for (unsigned seed = 0; seed < 200; ++seed) {
    StepCase c = tests::random_step(seed);
    c.budget.device = c.peak(c.schedule).device_bytes * (5 + seed % 5) / 10;
    const Plan plan = reclaim(c.request());
    const Reclaims reclaims = plan.reclaims.value();
    const std::size_t left = summarize(*c.graph, plan.schedule).swap_outs;
    EXPECT_EQ(left == 0, reclaims.ones + reclaims.alls == 0) << seed;
    EXPECT_LE(reclaims.ones + reclaims.alls, left) << seed;
    if (left > reclaims.ones + reclaims.alls) {
      EXPECT_GT(reclaims.alls, 0U) << seed;
    }
    with_alls += reclaims.alls > 0 ? 1 : 0;
  }
  EXPECT_GT(with_alls, 5U);
}

TEST(Reclaim, PlansStepsThatCannotFit) {
  const StepCase c = reclaimed_chain(5, 1);
  const Plan plan = reclaim(c.request());
  EXPECT_FALSE(fits(c.request(), plan.schedule));
  EXPECT_EQ(c.outcome(plan.schedule), c.outcome(c.schedule));
}

}  // namespace
}  // namespace cnn::lms
