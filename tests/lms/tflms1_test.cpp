#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lms/policies.h"
#include "lms/summary.h"
#include "tests/lms/chain_step.h"
#include "tests/support/test_ops.h"

namespace cnn::lms {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using tests::chain_step;
using tests::lines;
using tests::StepCase;
using tests::texts;

// Returns a step in which the next node, a distant forward node and a backward node read a.
StepCase skip_step() {
  StepCase c;
  const Value w = c.weights(1);
  const Value a = c.make("conv", {c.images(), w});
  const Value b = c.make("relu", {a});
  const Value d = c.make("relu", {c.make("relu", {b})});
  const Value sum = c.make("add", {d, a});
  const Value first = c.make("loss_backward", {sum});
  const Value dy = c.make("relu_backward", {first, b});
  emit(tests::Descend(), {w, c.make("conv_backward_weights", {dy, a})});
  c.settle(first);
  return c;
}

TEST(Tflms1, LogsAsTheOriginalDid) {
  const StepCase c = chain_step(4);
  EXPECT_THAT(lines(tflms1(c.request())),
              ElementsAre("Editing model for LMS", "n_tensors: all tensors", "lb: 1",
                          "Edited model is valid and logically equivalent to the original one",
                          "Added 8 ops into the model", "Editing model for LMS, took: {} ms",
                          "4 tensors will be swapped out(in) to(from) the host"));
}

TEST(Tflms1, LogsEachTensorWhereAskedTo) {
  StepCase c = chain_step(2);
  c.options.n_tensors = 2;
  c.options.tflms1.lb = 3;
  EXPECT_THAT(lines(tflms1(c.request()), 1),
              ElementsAre("Editing model for LMS", "n_tensors: 2", "lb: 3",
                          "Operation: conv#0, order 0, type conv",
                          "Tensor conv#0:0 will be placed on /cpu:0",
                          "Consuming op conv_backward_weights#3 (order 3) swaps in conv#0:0",
                          "Operation: conv#1, order 1, type conv",
                          "Tensor conv#1:0 will be placed on /cpu:0",
                          "Consuming op loss_backward#2 (order 2) swaps in conv#1:0",
                          "No control dependency op needed for swap in of op loss_backward#2.",
                          "Edited model is valid and logically equivalent to the original one",
                          "Added 4 ops into the model", "Editing model for LMS, took: {} ms",
                          "2 tensors will be swapped out(in) to(from) the host"));
}

TEST(Tflms1, TriggersByTheGradientsOfWhatComesNext) {
  StepCase c = chain_step(4);
  c.options.n_tensors = 2;
  EXPECT_THAT(
      texts(*c.graph, tflms1(c.request()).schedule),
      ElementsAre("conv#0", "conv#1", "offload conv#0", "conv#2", "offload conv#1", "conv#3",
                  "loss_backward#4", "conv_backward_weights#5", "fetch conv#1 <7", "descend#6",
                  "conv_backward_data#7", "conv_backward_weights#8", "fetch conv#0 <11",
                  "descend#9", "conv_backward_data#10", "conv_backward_weights#11", "descend#12",
                  "conv_backward_data#13", "conv_backward_weights#14", "descend#15"));
}

TEST(Tflms1, TriggersByLevelInDirectOrder) {
  StepCase c = chain_step(4);
  c.options.n_tensors = 1;
  c.options.tflms1.ctrld_strategy = TriggerRule::direct_order;
  c.options.tflms1.lb = 2;  // conv_backward_weights#11 is at level 7, so its trigger is at level 4
  EXPECT_THAT(texts(*c.graph, tflms1(c.request()).schedule), Contains("fetch conv#0 <5"));
  c.options.tflms1.ub = 2;
  EXPECT_THAT(texts(*c.graph, tflms1(c.request()).schedule), Contains("fetch conv#0 <1"))
      << "no step lies between both bounds, so the swap-in follows the swap-out";
}

TEST(Tflms1, TakesMoreMemoryWithMoreLead) {
  StepCase c = chain_step(40);
  const std::size_t unlimited = c.peak(c.schedule).device_bytes;
  std::size_t before = 0;
  for (const std::int64_t lb : {1, 2, 4, 8, 16, 32}) {
    c.options.tflms1.lb = lb;
    const std::size_t peak = c.peak(tflms1(c.request()).schedule).device_bytes;
    EXPECT_GE(peak, before) << lb;
    before = peak;
    if (lb == 1) {
      EXPECT_LT(peak * 6, unlimited);
    }
  }
  EXPECT_GT(before * 2, unlimited);
}

TEST(Tflms1, BringsATensorBackForFarReadersOfTheForwardPassToo) {
  StepCase c = skip_step();
  c.options.included_ops = {"^conv#0$"};
  EXPECT_THAT(texts(*c.graph, tflms1(c.request()).schedule),
              ElementsAre("conv#0", "relu#1", "relu#2", "relu#3", "add#4", "offload conv#0",
                          "loss_backward#5", "relu_backward#6", "fetch conv#0 <7",
                          "conv_backward_weights#7", "descend#8"));
  c.options.tflms1.swap_branches = true;
  const Plan plan = tflms1(c.request());
  EXPECT_THAT(texts(*c.graph, plan.schedule),
              ElementsAre("conv#0", "relu#1", "offload conv#0", "relu#2", "fetch conv#0 <3",
                          "relu#3", "add#4", "loss_backward#5", "relu_backward#6",
                          "fetch conv#0 <8", "conv_backward_weights#7", "descend#8"))
      << "the second time no swap-out is needed";
  EXPECT_EQ(c.outcome(plan.schedule), c.outcome(c.schedule));
  c.options.tflms1.branch_threshold = 3;
  EXPECT_EQ(summarize(*c.graph, tflms1(c.request()).schedule).swap_ins, 1U);
}

TEST(Tflms1, CountsTheCopiesBackOfTheOriginalAndMakesThoseThatDiffer) {
  StepCase c;
  const Value a = c.make("conv", {c.images(), c.weights(1)});
  const Value first = c.make("loss_backward", {c.make("conv", {a, c.weights(1)})});
  const Value b = c.make("conv_backward_data", {first, a});
  c.make("conv_backward_weights", {b, a});
  c.settle(first);
  c.options.n_tensors = 1;
  Plan plan = tflms1(c.request());
  EXPECT_THAT(lines(plan), Contains("Added 3 ops into the model"));
  EXPECT_THAT(lines(plan), Contains("A tensor is on the device once at a time: of 2 swap-in "
                                    "operations 1 are made"));
  EXPECT_EQ(summarize(*c.graph, plan.schedule).swap_ins, 1U);
  c.options.tflms1.fuse_swapins = true;
  plan = tflms1(c.request());
  EXPECT_THAT(lines(plan), Contains("Added 2 ops into the model"));
}

TEST(Tflms1, IsOffWithoutTensors) {
  StepCase c = chain_step(3);
  c.options.n_tensors = 0;
  EXPECT_EQ(texts(*c.graph, tflms1(c.request()).schedule), texts(*c.graph, c.schedule));
}

}  // namespace
}  // namespace cnn::lms
