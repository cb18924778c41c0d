#include <cstddef>
#include <gtest/gtest.h>
#include <vector>

#include "tests/allreduce/plans.h"

namespace cnn::allreduce {
namespace {

using tests::actions_of;
using tests::plan_on_one_host;
using tests::rounds_of;
using tests::sizes_sent;

TEST(Ring, NeedsTwoRoundsPerOtherRankWithOneSliceEach) {
  for (const int ranks : {2, 3, 5, 8}) {
    const auto n = static_cast<std::size_t>(ranks);
    const RankPlan plan = plan_on_one_host("ring", ranks, ranks - 1, 10 * n);
    EXPECT_EQ(rounds_of(plan), 2 * (n - 1)) << ranks;
    EXPECT_EQ(sizes_sent(plan), std::vector<std::size_t>(2 * (n - 1), 10)) << ranks;
  }
}

TEST(Ring, SendsToTheNextRankAndReceivesFromThePreviousOne) {
  for (int rank = 0; rank < 5; ++rank) {
    const RankPlan plan = plan_on_one_host("ring", 5, rank, 100);
    for (const Send& send : actions_of<Send>(plan)) {
      EXPECT_EQ(send.to, (rank + 1) % 5);
    }
    for (const Receive& receive : actions_of<Receive>(plan)) {
      EXPECT_EQ(receive.from, (rank + 4) % 5);
    }
  }
}

TEST(Ring, PassesOnEachSliceThatItHasJustReceived) {
  std::vector<Range> sent, received;
  const RankPlan plan = plan_on_one_host("ring", 4, 0, 8);
  for (const Send& send : actions_of<Send>(plan)) {
    sent.push_back(send.range);
  }
  for (const Receive& receive : actions_of<Receive>(plan)) {
    received.push_back(receive.range);
  }
  EXPECT_EQ(sent, (std::vector<Range>{{6, 8}, {4, 6}, {2, 4}, {0, 2}, {6, 8}, {4, 6}}));
  EXPECT_EQ(received, (std::vector<Range>{{4, 6}, {2, 4}, {0, 2}, {6, 8}, {4, 6}, {2, 4}}));
}

TEST(Ring, FinishesOnlyTheSliceOfItsOwnRank) {
  std::vector<Range> finished;
  for (const Sum& sum : actions_of<Sum>(plan_on_one_host("ring", 4, 2, 8))) {
    if (sum.last) {
      finished.push_back(sum.range);
    }
  }
  EXPECT_EQ(finished, (std::vector<Range>{{4, 6}}));
}

TEST(Ring, DoesNothingForOneRank) {
  EXPECT_TRUE(plan_on_one_host("ring", 1, 0, 8).chunks.front().actions.empty());
}

}  // namespace
}  // namespace cnn::allreduce
