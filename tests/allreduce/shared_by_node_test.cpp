#include <cstddef>
#include <gtest/gtest.h>
#include <vector>

#include "tests/allreduce/plans.h"

namespace cnn::allreduce {
namespace {

using tests::actions_of;
using tests::proved;

// One host of two NUMA nodes, each of two ranks.
Topology two_nodes() { return {{0, 0, 0, 0}, {}, {0, 0, 1, 1}}; }

RankPlan plan_of(int rank) { return make_plan(find("shared_by_node"), two_nodes(), rank, 100, {}); }

TEST(SharedByNode, AddsTheFirstNodeBeforeTheLastOneFinishes) {
  for (int rank = 0; rank < 4; ++rank) {
    const RankPlan plan = plan_of(rank);
    const std::vector<Sum> sums = actions_of<Sum>(plan);
    ASSERT_FALSE(sums.empty());
    const bool in_last_node = rank >= 2;
    EXPECT_EQ(sums.front().last, in_last_node) << rank;
    // The last node adds the first one's partial sum to its own two buffers.
    EXPECT_EQ(plan.operands_of(sums.front()).size(), in_last_node ? 3U : 2U) << rank;
  }
}

TEST(SharedByNode, ReadsOneBufferOfAnotherNode) {
  for (int rank = 0; rank < 4; ++rank) {
    const RankPlan plan = plan_of(rank);
    for (const Sum& sum : actions_of<Sum>(plan)) {
      int foreign = 0;
      for (const Operand& operand : plan.operands_of(sum)) {
        foreign += operand.source == Operand::Source::peer_buffer &&
                           !two_nodes().same_node(rank, static_cast<int>(operand.index))
                       ? 1
                       : 0;
      }
      EXPECT_LE(foreign, 1) << rank;
    }
  }
}

TEST(SharedByNode, PassesEquallyManyBarriersOnAllRanks) {
  for (int rank = 0; rank < 4; ++rank) {
    EXPECT_EQ(actions_of<Barrier>(plan_of(rank)).size(), 4U) << rank;  // nodes + 2
  }
}

TEST(SharedByNode, IsTheSumOfAllBuffersOnASingleNode) {
  for (int rank = 0; rank < 3; ++rank) {
    const RankPlan by_node =
        make_plan(find("shared_by_node"), {{0, 0, 0}, {}, {5, 5, 5}}, rank, 90, {});
    const std::vector<Sum> sums = actions_of<Sum>(by_node);
    ASSERT_EQ(sums.size(), 1U);
    EXPECT_EQ(by_node.operands_of(sums.front()).size(), 3U);
  }
}

TEST(SharedByNode, KeepsTheOrderOfRanks) {
  EXPECT_NO_THROW(proved("shared_by_node", two_nodes(), 100, {.order = Order::rank}));
}

}  // namespace
}  // namespace cnn::allreduce
