#include <cstddef>
#include <gtest/gtest.h>
#include <vector>

#include "tests/allreduce/plans.h"

namespace cnn::allreduce {
namespace {

using tests::actions_of;
using tests::plan_on_one_host;
using tests::proved;

// A plan that is not cut into chunks has one chunk for each of the two trees.
bool is_root(const Chunk& tree) {
  const std::vector<Sum> sums = actions_of<Sum>(tree);
  return !sums.empty() && sums.back().last;
}
bool is_leaf(const Chunk& tree) { return actions_of<Sum>(tree).empty(); }

TEST(Tree, HasItsTwoRootsAtTheEndsOfAnEvenNumberOfRanks) {
  for (int rank = 0; rank < 8; ++rank) {
    const RankPlan plan = plan_on_one_host("tree", 8, rank, 100);
    ASSERT_EQ(plan.chunks.size(), 2U);
    EXPECT_EQ(is_root(plan.chunks[0]), rank == 0);
    EXPECT_EQ(is_root(plan.chunks[1]), rank == 7);
  }
}

TEST(Tree, MakesEachRankALeafOfExactlyOneTreeIfRanksAreEven) {
  for (int ranks = 2; ranks <= 32; ranks += 2) {
    for (int rank = 0; rank < ranks; ++rank) {
      const RankPlan plan = plan_on_one_host("tree", ranks, rank, 100);
      EXPECT_NE(is_leaf(plan.chunks[0]), is_leaf(plan.chunks[1])) << rank << " of " << ranks;
    }
  }
}

TEST(Tree, GivesARankAtMostTwoChildrenInEachTree) {
  for (int ranks = 1; ranks <= 33; ++ranks) {
    for (int rank = 0; rank < ranks; ++rank) {
      for (const Chunk& tree : plan_on_one_host("tree", ranks, rank, 100).chunks) {
        const std::size_t parents = is_root(tree) || ranks == 1 ? 0 : 1;
        EXPECT_LE(actions_of<Send>(tree).size(), 2 + parents) << rank << " of " << ranks;
      }
    }
  }
}

// Each tree has an edge less than ranks, and half a buffer travels up and down each edge.
TEST(Tree, SendsTwoBuffersPerOtherRankInAll) {
  for (const int ranks : {2, 5, 8, 13}) {
    std::size_t sent = 0;
    for (const Traffic& traffic : proved("tree", ranks_on_hosts(1, ranks), 1000)) {
      sent += traffic.elements_sent;
    }
    EXPECT_EQ(sent, 2000 * (static_cast<std::size_t>(ranks) - 1));
  }
}

}  // namespace
}  // namespace cnn::allreduce
