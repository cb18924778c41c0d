#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lms/policies.h"
#include "lms/summary.h"
#include "tests/lms/chain_step.h"

namespace cnn::lms {
namespace {

using ::testing::ElementsAre;
using tests::chain_step;
using tests::StepCase;
using tests::texts;

TEST(Capuchin, LetsTensorsWithTheMostFreeTimeLeave) {
  StepCase c = chain_step(5);
  c.budget.device = std::size_t{64} * 4;
  c.costs.out_bytes_per_second = c.costs.in_bytes_per_second = 64;
  EXPECT_THAT(texts(*c.graph, capuchin(c.request()).schedule),
              ElementsAre("conv#0", "conv#1", "offload conv#0", "conv#2", "offload conv#1",
                          "conv#3", "conv#4", "loss_backward#5", "conv_backward_weights#6",
                          "descend#7", "conv_backward_data#8", "conv_backward_weights#9",
                          "descend#10", "fetch conv#1 <12", "conv_backward_data#11",
                          "conv_backward_weights#12", "descend#13", "fetch conv#0 <16",
                          "conv_backward_data#14", "conv_backward_weights#15", "descend#16",
                          "conv_backward_data#17", "conv_backward_weights#18", "descend#19"));
}

TEST(Capuchin, RunsAgainWhatWouldBeWaitedForLonger) {
  StepCase c = chain_step(5);
  c.budget.device = std::size_t{64} * 4;
  c.costs.out_bytes_per_second = c.costs.in_bytes_per_second = 64.0 / 6;
  const Summary mixed = summarize(*c.graph, capuchin(c.request()).schedule);
  EXPECT_EQ(mixed.swap_outs, 1U) << "conv#0, whose copies have enough time";
  EXPECT_EQ(mixed.recomputed, 1U) << "conv#2 takes one second instead of four";
  c.options.recompute = Recomputation::off;
  const Summary swapped = summarize(*c.graph, capuchin(c.request()).schedule);
  EXPECT_EQ(swapped.swap_outs, 2U);
  EXPECT_EQ(swapped.recomputed, 0U);
}

TEST(Capuchin, MeetsTheBudgetOfAChain) {
  StepCase c = chain_step(40);
  c.costs.out_bytes_per_second = c.costs.in_bytes_per_second = 32;
  for (const std::size_t images : {40, 30, 20, 10, 4}) {
    c.budget.device = images * 64;
    EXPECT_LE(c.peak(capuchin(c.request()).schedule).device_bytes, c.budget.device) << images;
  }
  c.options.n_tensors = 2;
  EXPECT_EQ(summarize(*c.graph, capuchin(c.request()).schedule).swapped_tensors, 2U);
}

TEST(Capuchin, MovesNothingWhereTheStepFits) {
  StepCase c = chain_step(5);
  c.budget.device = c.peak(c.schedule).device_bytes;
  EXPECT_EQ(texts(*c.graph, capuchin(c.request()).schedule), texts(*c.graph, c.schedule));
}

TEST(Capuchin, GoesAsFarAsItCanWhereNothingFits) {
  StepCase c = chain_step(5);
  c.budget.device = 1;
  const Plan plan = capuchin(c.request());
  EXPECT_TRUE(summarize(*c.graph, plan.schedule).moves());
  EXPECT_LT(c.peak(plan.schedule).device_bytes, c.peak(c.schedule).device_bytes);
}

// Copies of six seconds: alone each of five tensors has time for its copies, but a link that
// carries one at a time has not.
TEST(Capuchin, CountsTheCopiesThatShareTheLink) {
  StepCase c = chain_step(10);
  c.budget.device = std::size_t{64} * 6;
  c.costs.out_bytes_per_second = c.costs.in_bytes_per_second = 64.0 / 6;
  const Plan plan = capuchin(c.request());
  const Summary summary = summarize(*c.graph, plan.schedule);
  EXPECT_EQ(summary.swap_outs, 2U);
  EXPECT_EQ(summary.recomputed, 3U);
  EXPECT_LE(c.peak(plan.schedule).device_bytes, c.budget.device);
}

// If copies take no time, every swap is free and recomputation is never needed.
TEST(Capuchin, SwapsOnlyWhereCopiesTakeNoTime) {
  StepCase c = chain_step(10);
  c.costs.out_bytes_per_second = c.costs.in_bytes_per_second = 0;
  c.budget.device = std::size_t{64} * 5;
  const Summary summary = summarize(*c.graph, capuchin(c.request()).schedule);
  EXPECT_GT(summary.swap_outs, 0U);
  EXPECT_EQ(summary.recomputed, 0U);
}

}  // namespace
}  // namespace cnn::lms
