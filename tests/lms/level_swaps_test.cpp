#include "lms/level_swaps.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <vector>

#include "lms/stash.h"
#include "tests/lms/chain_step.h"

namespace cnn::lms {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// The nodes of a chain of three layers, each behind its level:
//   0 y1   1 y2   2 y3   3 loss_backward   4 dw3 (node 4), dy2 (node 6)
//   5 update, dw2 (node 7), dy1 (node 9)   6 update, dw1   7 update
// y2 and dw2 read y1, y3 and dw3 read y2, and only loss_backward reads y3.
class SwapsOfAChain : public ::testing::Test {
 protected:
  std::vector<LevelSwap> find(const LevelParameters& parameters) const {
    return LevelSwaps(request, levels, tensors).find(parameters);
  }

  tests::StepCase step_case = tests::chain_step(3);
  Request request = step_case.request();
  Levels levels{*step_case.graph, step_case.schedule};
  std::vector<Stashed> tensors = candidates(request);
};

TEST_F(SwapsOfAChain, AreOfTensorsWithReadersBeyondTheThreshold) {
  EXPECT_EQ(find({.threshold = 0, .sync = SyncMode::both}).size(), 3U);
  EXPECT_EQ(find({.threshold = 2, .sync = SyncMode::both}).size(), 2U) << "y3 stays";
  const std::vector<LevelSwap> farthest = find({.threshold = 4, .sync = SyncMode::both});
  ASSERT_EQ(farthest.size(), 1U);
  EXPECT_EQ(farthest[0].tensor->tensor, tensors[0].tensor);
  EXPECT_THAT(farthest[0].near, ElementsAre(NodeId{1}));
  ASSERT_EQ(farthest[0].groups.size(), 1U);
  EXPECT_THAT(farthest[0].groups[0].readers, ElementsAre(NodeId{7}));
  EXPECT_THAT(find({.threshold = 5, .sync = SyncMode::both}), IsEmpty())
      << "a reader at the threshold is near";
}

TEST_F(SwapsOfAChain, HaveNoNearReadersWhereAllAreFar) {
  const std::vector<LevelSwap> swaps = find({.threshold = 0, .sync = SyncMode::both});
  ASSERT_EQ(swaps.size(), 3U);
  EXPECT_THAT(swaps[0].near, IsEmpty());
  ASSERT_EQ(swaps[0].groups.size(), 2U);
  EXPECT_THAT(swaps[0].groups[0].readers, ElementsAre(NodeId{1}));
  EXPECT_THAT(swaps[0].groups[1].readers, ElementsAre(NodeId{7}));
}

TEST_F(SwapsOfAChain, ShareACopyWithinSoManyLevels) {
  const auto groups = [&](std::int64_t groupby) {
    return find({.threshold = 0, .groupby = groupby, .sync = SyncMode::both}).at(0).groups.size();
  };
  EXPECT_EQ(groups(-1), 2U);
  EXPECT_EQ(groups(0), 2U);
  EXPECT_EQ(groups(3), 2U) << "four levels lie between the readers of y1";
  EXPECT_EQ(groups(4), 1U);
}

TEST_F(SwapsOfAChain, AreTriggeredFromMoreLevelsAheadThanGiven) {
  const auto trigger = [&](std::int64_t ahead) {
    return find({.threshold = 4, .ahead = ahead, .groupby = 0}).at(0).groups.at(0).trigger;
  };
  EXPECT_EQ(trigger(1), NodeId{3}) << "two levels before level 5";
  EXPECT_EQ(trigger(2), NodeId{2});
  EXPECT_EQ(trigger(3), NodeId{1});
  EXPECT_FALSE(trigger(4)) << "there is no such level behind the producer";
  EXPECT_FALSE(trigger(1000));
}

TEST_F(SwapsOfAChain, HaveNoTriggerWhereCopiesBackAreWaitedFor) {
  for (const SyncMode sync : {SyncMode::in, SyncMode::both}) {
    EXPECT_FALSE(find({.threshold = 4, .ahead = 1, .sync = sync}).at(0).groups.at(0).trigger);
  }
  EXPECT_TRUE(find({.threshold = 4, .ahead = 1, .sync = SyncMode::out}).at(0).groups[0].trigger);
}

TEST_F(SwapsOfAChain, AreNoMoreThanTheOptionsAllow) {
  for (const std::size_t most : {0, 1, 2, 3}) {
    step_case.options.n_tensors = static_cast<std::int64_t>(most);
    EXPECT_EQ(find({.threshold = 0, .sync = SyncMode::both}).size(), most);
  }
}

TEST(LevelSwaps, CountOnlyTensorsThatLeaveAgainstTheLimit) {
  tests::StepCase c;
  const Value near = c.make("conv", {c.images(), c.weights(1)});
  const Value far = c.make("conv", {near, c.weights(1)});
  Value last = c.make("conv", {far, c.weights(1)});
  last = c.make("relu", {last});
  const Value first = c.make("loss_backward", {last, near});
  c.make("conv_backward", {c.make("relu_backward", {first}), far});
  c.settle(first);
  c.options.n_tensors = 1;
  const Request request = c.request();
  const Levels levels(*c.graph, c.schedule);
  const std::vector<Stashed> tensors = candidates(request);
  ASSERT_EQ(tensors.at(0).tensor, near.id);
  const std::vector<LevelSwap> swaps =
      LevelSwaps(request, levels, tensors).find({.threshold = 4, .sync = SyncMode::both});
  ASSERT_EQ(swaps.size(), 1U);
  EXPECT_EQ(swaps[0].tensor->tensor, far.id) << "the first one stays and does not count";
}

// The trigger must lie on a path to the reader; any other node could run at any time.
TEST(LevelSwaps, AreTriggeredByANodeThatTheReaderNeeds) {
  tests::StepCase c;
  const Value a = c.make("conv", {c.images(), c.weights(1)});
  Value beside = a, path = c.make("conv", {c.images(), c.weights(1)});
  for (int i = 0; i < 4; ++i) {
    beside = c.make("relu", {beside});
    path = c.make("conv", {path});
  }
  const Value first = c.make("loss_backward", {path});
  c.make("conv_backward", {first, a});
  c.make("other", {beside, first});
  c.settle(first);
  const Request request = c.request();
  const Levels levels(*c.graph, c.schedule);
  const std::vector<Stashed> tensors = candidates(request);
  const auto swaps = LevelSwaps(request, levels, tensors).find({.threshold = 4, .ahead = 2});
  ASSERT_FALSE(swaps.empty());
  ASSERT_EQ(swaps[0].tensor->tensor, a.id);
  const ReaderGroup& group = swaps[0].groups.at(0);
  ASSERT_TRUE(group.trigger.has_value());
  EXPECT_EQ(levels.of(*group.trigger), 3U);
  EXPECT_TRUE(levels.reaches(*group.trigger, group.readers.front()));
}

}  // namespace
}  // namespace cnn::lms
