#include "lms/repeats.h"

#include <gtest/gtest.h>
#include <vector>

#include "lms/policy.h"
#include "tests/lms/chain_step.h"
#include "tests/support/test_ops.h"

namespace cnn::lms {
namespace {

using tests::chain_step;
using tests::StepCase;

TensorId image_of(const StepCase& c, std::size_t layer) {
  return c.graph->nodes()[layer].outputs.front();
}

TEST(Repeats, RunInTheOrderInWhichTheyReadEachOther) {
  const StepCase c = chain_step(4);
  const Request request = c.request();
  Repeats repeats(request);
  TensorDecisions decisions = repeats.kept();
  for (const std::size_t layer : {0, 1, 2}) {
    decisions[repeats.root(image_of(c, layer))] = TensorDecision::drop;
  }
  const auto found = repeats.find(decisions);
  ASSERT_TRUE(found.has_value());
  ASSERT_EQ(found->size(), 3U);
  for (std::uint32_t i = 0; i < 3; ++i) {
    EXPECT_EQ(found->at(i).node, NodeId{i});
    EXPECT_EQ(found->at(i).before, StepId{5}) << "the gradient that reads the third";
  }
  EXPECT_DOUBLE_EQ(repeats.seconds(*found), 3);
}

TEST(Repeats, ReadNothingThatIsAway) {
  const StepCase c = chain_step(3);
  const Request request = c.request();
  Repeats repeats(request);
  TensorDecisions decisions = repeats.kept();
  decisions[repeats.root(image_of(c, 1))] = TensorDecision::drop;
  const std::size_t input = repeats.root(image_of(c, 0));
  std::vector<StepId> looked_up;
  EXPECT_TRUE(repeats.find(decisions, [&](std::size_t root, StepId step) {
    if (root == input) {
      looked_up.push_back(step);
    }
    return false;
  }));
  EXPECT_EQ(looked_up, std::vector<StepId>{StepId{4}});
  EXPECT_FALSE(repeats.find(decisions, [&](std::size_t root, StepId) { return root == input; }));
}

TEST(Repeats, DropEachOfAListUpToALimit) {
  const StepCase c = chain_step(5);
  const Request request = c.request();
  Repeats repeats(request);
  std::vector<std::size_t> roots;
  for (const std::size_t layer : {3, 1, 0}) {
    roots.push_back(repeats.root(image_of(c, layer)));
  }
  EXPECT_EQ(repeats.drop_each(roots, -1).size(), 3U);
  EXPECT_TRUE(repeats.drop_each(roots, 0).empty());
  const std::vector<Recompute> one = repeats.drop_each(roots, 1);
  ASSERT_EQ(one.size(), 1U);
  EXPECT_EQ(one[0].node, NodeId{3}) << "the first of the list";
  EXPECT_TRUE(repeats.drop_each({}, -1).empty());
}

// An update changes the first layer's weights between two uses of its output.
TEST(Repeats, DropTheOthersWhereOneCannotBeMadeAgain) {
  StepCase c;
  const Value w = c.weights(1);
  const Value a = c.make("conv", {c.images(), w});
  const Value b = c.make("relu", {c.images()});
  const Value first = c.make("loss_backward", {c.make("add", {a, b})});
  emit(tests::Descend(), {w, c.make_all("dw", {first}, {w.desc()}).front()});
  c.make("late", {first, a, b});
  c.settle(first);
  const Request request = c.request();
  Repeats repeats(request);
  const std::vector<Recompute> found =
      repeats.drop_each({repeats.root(a.id), repeats.root(b.id)}, -1);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].node, c.graph->producer(b.id));
  EXPECT_EQ(repeats.last_repeat(0), 5U) << "the step of the update";
  EXPECT_EQ(repeats.last_repeat(1), c.schedule.steps.size())
      << "its node reads nothing that changes";
}

TEST(Repeats, AreNeverOfTheBackwardPass) {
  const StepCase c = chain_step(3);
  const Request request = c.request();
  const Repeats repeats(request);
  EXPECT_TRUE(repeats.last_repeat(2));
  EXPECT_FALSE(repeats.last_repeat(3)) << "loss_backward";
  EXPECT_FALSE(repeats.last_repeat(5)) << "an update";
}

// An update changes the weights before a gradient needs the layer's output again.
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

}  // namespace
}  // namespace cnn::lms
