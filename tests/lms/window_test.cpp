#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lms/policies.h"
#include "lms/summary.h"
#include "tests/lms/chain_step.h"
#include "tests/lms/random_step.h"

namespace cnn::lms {
namespace {

using ::testing::ElementsAre;
using tests::chain_step;
using tests::lines;
using tests::StepCase;
using tests::texts;

TEST(Window, MovesOverTheStepAsFarAsAllFits) {
  StepCase c = chain_step(5);
  c.budget.device = std::size_t{64} * 4;
  EXPECT_THAT(
      texts(*c.graph, window(c.request()).schedule),
      ElementsAre("conv#0", "conv#1", "offload conv#0", "conv#2", "offload conv#1", "conv#3",
                  "offload conv#2", "conv#4", "loss_backward#5", "conv_backward_weights#6",
                  "descend#7", "fetch conv#2 <10", "conv_backward_data#8",
                  "conv_backward_weights#9", "descend#10", "fetch conv#1 <14",
                  "conv_backward_data#11", "conv_backward_weights#12", "descend#13",
                  "fetch conv#0 <18", "conv_backward_data#14", "conv_backward_weights#15",
                  "descend#16", "conv_backward_data#17", "conv_backward_weights#18", "descend#19"));
}

TEST(Window, LetsNothingLeaveThatItReaches) {
  StepCase c = chain_step(10);
  EXPECT_FALSE(summarize(*c.graph, window(c.request()).schedule).moves());
  std::size_t before = 0;
  for (const std::size_t images : {12, 8, 6, 4, 3}) {
    c.budget.device = images * 64;
    const Plan plan = window(c.request());
    const std::size_t out = summarize(*c.graph, plan.schedule).swap_outs;
    EXPECT_GE(out, before) << images;
    EXPECT_LE(c.peak(plan.schedule).device_bytes, c.budget.device) << images;
    before = out;
  }
}

// With a window of one budget, a tensor could leave whose next use is just beyond the window.
TEST(Window, ReachesHalfABudgetBeyondWhatFits) {
  StepCase c = chain_step(10);
  c.budget.device = std::size_t{64} * 8;
  const Plan plan = window(c.request());
  EXPECT_THAT(lines(plan, 1), ElementsAre("The window has 1.5 times the budget"));
  EXPECT_LE(c.peak(plan.schedule).device_bytes, c.budget.device);
}

TEST(Window, IsSmallerWhereItsTensorsDoNotFit) {
  std::size_t smaller = 0;
  for (unsigned seed = 0; seed < 100; ++seed) {
    StepCase c = tests::random_step(seed);
    c.budget.device = c.peak(c.schedule).device_bytes * (6 + seed % 4) / 10;
    smaller +=
        lines(window(c.request()), 1).front() == "The window has 1.5 times the budget" ? 0 : 1;
  }
  EXPECT_GT(smaller, 5U);
  EXPECT_LT(smaller, 95U);
}

TEST(Window, LetsNoMoreTensorsGoThanAllowed) {
  StepCase c = chain_step(10);
  c.budget.device = std::size_t{64} * 4;
  c.options.n_tensors = 2;
  EXPECT_LE(summarize(*c.graph, window(c.request()).schedule).swapped_tensors, 2U);
  c.options.n_tensors = 0;
  EXPECT_FALSE(summarize(*c.graph, window(c.request()).schedule).moves());
}

}  // namespace
}  // namespace cnn::lms
