#include <cstddef>
#include <gtest/gtest.h>
#include <vector>

#include "tests/allreduce/plans.h"

namespace cnn::allreduce {
namespace {

using tests::actions_of;
using tests::plan_on_one_host;

TEST(Shared, SendsNothingAndAddsOneSliceIntoAllBuffers) {
  for (int rank = 0; rank < 4; ++rank) {
    const RankPlan plan = plan_on_one_host("shared", 4, rank, 400);
    EXPECT_TRUE(actions_of<Send>(plan).empty());
    EXPECT_EQ(plan.scratch, 0U);
    const std::vector<Sum> sums = actions_of<Sum>(plan);
    ASSERT_EQ(sums.size(), 1U);
    const std::size_t begin = 100 * static_cast<std::size_t>(rank);
    EXPECT_EQ(sums.front().range, (Range{begin, begin + 100}));
    EXPECT_EQ(plan.groups.at(sums.front().into.value()), (std::vector<int>{0, 1, 2, 3}));
  }
}

TEST(Shared, ReadsThePeersInTheOrderOfRanks) {
  const RankPlan plan = plan_on_one_host("shared", 3, 1, 30);
  const auto operands = plan.operands_of(actions_of<Sum>(plan).front());
  ASSERT_EQ(operands.size(), 3U);
  EXPECT_EQ(operands[0].source, Operand::Source::peer_buffer);
  EXPECT_EQ(operands[0].index, 0U);
  EXPECT_EQ(operands[1].source, Operand::Source::own_buffer);
  EXPECT_EQ(operands[2].source, Operand::Source::peer_buffer);
  EXPECT_EQ(operands[2].index, 2U);
}

TEST(Shared, MeetsBeforeAndAfterTheSumOfEachChunk) {
  const RankPlan plan = plan_on_one_host("shared", 2, 0, 30, {.chunks = 3});
  ASSERT_EQ(plan.chunks.size(), 3U);
  for (const Chunk& chunk : plan.chunks) {
    ASSERT_EQ(chunk.actions.size(), 3U);
    EXPECT_TRUE(std::holds_alternative<Barrier>(chunk.actions[0]));
    EXPECT_TRUE(std::holds_alternative<Sum>(chunk.actions[1]));
    EXPECT_TRUE(std::holds_alternative<Barrier>(chunk.actions[2]));
  }
}

TEST(Shared, PassesNoBarrierForNothing) {
  EXPECT_TRUE(actions_of<Barrier>(plan_on_one_host("shared", 4, 0, 0)).empty());
  EXPECT_TRUE(actions_of<Barrier>(plan_on_one_host("shared", 1, 0, 100)).empty());
}

}  // namespace
}  // namespace cnn::allreduce
