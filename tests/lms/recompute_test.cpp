// The policies that run nodes again, and what they share.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lms/policies.h"
#include "lms/repeats.h"
#include "lms/summary.h"
#include "tests/lms/chain_step.h"
#include "tests/support/test_ops.h"

namespace cnn::lms {
namespace {

using ::testing::ElementsAre;
using tests::chain_step;
using tests::StepCase;
using tests::texts;

// conv, relu, conv, relu; each gradient needs the input of its layer.
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

// The weights change before what they made is needed again.
TEST(Repeats, NeverReadWhatWasUpdated) {
  StepCase c;
  const Value w = c.weights(1);
  const Value a = c.make("conv", {c.images(), w});
  const Value first = c.make("loss_backward", {c.make("relu", {a})});
  emit(tests::Descend(), {w, c.make_all("dw", {first}, {w.desc()}).front()});
  const Value dy = c.make("relu_backward", {first});
  c.make("late", {dy, a});
  c.settle(first);
  const Request request = c.request();
  Repeats repeats(request);
  TensorDecisions decisions = repeats.kept();
  EXPECT_TRUE(repeats.find(decisions)->empty());
  decisions[repeats.root(a.id)] = TensorDecision::drop;
  EXPECT_FALSE(repeats.find(decisions));
  EXPECT_TRUE(repeats.drop_each({repeats.root(a.id)}, -1).empty());
}

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
  EXPECT_EQ(mixed.swap_outs, 1U) << "conv#0, which has time enough";
  EXPECT_EQ(mixed.recomputed, 1U) << "conv#2: a second instead of four";
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

}  // namespace
}  // namespace cnn::lms
