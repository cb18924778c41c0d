#include <cstddef>
#include <gtest/gtest.h>
#include <vector>

#include "tests/allreduce/plans.h"

namespace cnn::allreduce {
namespace {

using tests::actions_of;
using tests::destinations_of;
using tests::plan_on_one_host;
using tests::rounds_of;
using tests::sizes_sent;

TEST(Direct, NeedsTwoRoundsForAnyNumberOfRanks) {
  for (const int ranks : {2, 3, 8, 33}) {
    EXPECT_EQ(rounds_of(plan_on_one_host("direct", ranks, 1, 1000)), 2U) << ranks;
  }
}

TEST(Direct, SendsEverySliceToItsOwnerAndItsSumToEverybody) {
  const RankPlan plan = plan_on_one_host("direct", 4, 1, 8);
  EXPECT_EQ(destinations_of(plan), (std::vector<int>{2, 3, 0, 2, 3, 0}));
  std::vector<Range> sent;
  for (const Send& send : actions_of<Send>(plan)) {
    sent.push_back(send.range);
  }
  EXPECT_EQ(sent, (std::vector<Range>{{4, 6}, {6, 8}, {0, 2}, {2, 4}, {2, 4}, {2, 4}}));
}

TEST(Direct, StartsItsMessagesAtAnotherRankOnEveryRank) {
  std::vector<bool> first(6);
  for (int rank = 0; rank < 6; ++rank) {
    first[static_cast<std::size_t>(
        destinations_of(plan_on_one_host("direct", 6, rank, 60)).front())] = true;
  }
  EXPECT_EQ(first, std::vector<bool>(6, true));
}

TEST(Direct, AddsContributionsByRankNumberInOneSum) {
  for (int rank = 0; rank < 3; ++rank) {
    const RankPlan plan = plan_on_one_host("direct", 3, rank, 9);
    const std::vector<Sum> sums = actions_of<Sum>(plan);
    ASSERT_EQ(sums.size(), 1U);
    EXPECT_TRUE(sums.front().last);
    const auto operands = plan.operands_of(sums.front());
    ASSERT_EQ(operands.size(), 3U);
    for (std::size_t k = 0; k < 3; ++k) {
      EXPECT_EQ(operands[k].source, static_cast<int>(k) == rank ? Operand::Source::own_buffer
                                                                : Operand::Source::scratch);
    }
  }
}

TEST(Direct, CutsEveryChunkIntoSlicesOfItsOwn) {
  const RankPlan plan = plan_on_one_host("direct", 2, 0, 12, {.chunks = 3});
  ASSERT_EQ(plan.chunks.size(), 3U);
  EXPECT_EQ(sizes_sent(plan), std::vector<std::size_t>(6, 2));
}

}  // namespace
}  // namespace cnn::allreduce
