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

// Returns a chain conv, relu, conv, relu in which each gradient reads its layer's input.
StepCase cheap_step() {
  StepCase c;
  const Value a = c.make("conv", {c.images(), c.weights(1)});
  const Value b = c.make("relu", {a});
  const Value d = c.make("conv", {b, c.weights(1)});
  const Value first = c.make("loss_backward", {c.make("relu", {d})});
  Value dy = c.make("relu_backward", {first, d});
  dy = c.make("conv_backward", {dy, b});
  c.make("relu_backward", {dy, a});
  c.settle(first);
  return c;
}

TEST(Recompute, DropsWhatIsMadeCheaply) {
  StepCase c = cheap_step();
  c.options.recompute = Recomputation::cheap;
  EXPECT_THAT(texts(*c.graph, recompute(c.request()).schedule),
              ElementsAre("conv#0", "relu#1", "conv#2", "relu#3", "loss_backward#4",
                          "relu_backward#5", "relu#1", "conv_backward#6", "relu_backward#7"));
}

TEST(Recompute, KeepsATensorInSoManyAsTheRootOfAChain) {
  StepCase c = chain_step(16);
  c.options.recompute = Recomputation::full;
  const Plan plan = recompute(c.request());
  EXPECT_EQ(summarize(*c.graph, plan.schedule).recomputed, 12U);
  EXPECT_LE(c.peak(plan.schedule).device_bytes, std::size_t{64} * 9);
  EXPECT_EQ(c.outcome(plan.schedule), c.outcome(c.schedule));
}

TEST(Recompute, KeepsTheInputsOfBlocks) {
  StepCase c;
  Value x = c.make("conv", {c.images(), c.weights(1)});
  std::vector<Value> stash{x};
  for (int block = 0; block < 2; ++block) {
    const Value inner = c.make("conv", {x, c.weights(1)});
    x = c.make("add", {inner, x});
    stash.insert(stash.end(), {inner, x});
  }
  const Value first = c.make("loss_backward", {c.make("dense", {x})});
  Value dy = first;
  for (auto value = stash.rbegin(); value != stash.rend(); ++value) {
    dy = c.make("backward", {dy, *value});
  }
  c.settle(first);
  c.options.recompute = Recomputation::full;
  EXPECT_THAT(texts(*c.graph, recompute(c.request()).schedule),
              ElementsAre("conv#0", "conv#1", "add#2", "conv#3", "add#4", "dense#5",
                          "loss_backward#6", "backward#7", "conv#3", "backward#8", "backward#9",
                          "conv#1", "backward#10", "backward#11"));
}

TEST(Recompute, DoesAsMuchAsIsNeededWhereItMayChoose) {
  StepCase c = cheap_step();
  const std::size_t unlimited = c.peak(c.schedule).device_bytes;
  c.budget.device = unlimited;
  EXPECT_FALSE(summarize(*c.graph, recompute(c.request()).schedule).moves());
  c.budget.device = unlimited - 1;
  EXPECT_EQ(summarize(*c.graph, recompute(c.request()).schedule).recomputed, 1U);
  c.options.recompute = Recomputation::off;
  EXPECT_FALSE(summarize(*c.graph, recompute(c.request()).schedule).moves());
}

TEST(Recompute, DropsNoMoreTensorsThanAllowed) {
  StepCase c = chain_step(16);
  c.options.recompute = Recomputation::full;
  c.options.n_tensors = 1;
  EXPECT_EQ(summarize(*c.graph, recompute(c.request()).schedule).recomputed, 1U);
}

}  // namespace
}  // namespace cnn::lms
