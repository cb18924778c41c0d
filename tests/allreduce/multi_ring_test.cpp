#include <algorithm>
#include <cstddef>
#include <gtest/gtest.h>
#include <vector>

#include "tests/allreduce/plans.h"

namespace cnn::allreduce {
namespace {

using tests::actions_of;
using tests::sizes_sent;

RankPlan two_hosts_of_two(int rank, const Options& options) {
  return make_plan(find("multi_ring"), ranks_on_hosts(2, 2), rank, 80, options);
}

TEST(MultiRing, CrossesToTheNextHostFromAnotherRankInEachRing) {
  const std::vector<std::vector<int>> next{{1, 3}, {2, 0}, {3, 1}, {0, 2}};  // by rank and ring
  for (int rank = 0; rank < 4; ++rank) {
    const RankPlan plan = two_hosts_of_two(rank, {.rings = 2});
    ASSERT_EQ(plan.chunks.size(), 2U);
    for (std::size_t ring = 0; ring < 2; ++ring) {
      for (const Send& send : actions_of<Send>(plan.chunks[ring])) {
        EXPECT_EQ(send.to, next[static_cast<std::size_t>(rank)][ring]) << rank << " ring " << ring;
      }
    }
  }
}

TEST(MultiRing, GivesEachRingAnEqualPartOfTheBuffer) {
  const RankPlan plan = two_hosts_of_two(0, {.rings = 2});
  for (std::size_t ring = 0; ring < 2; ++ring) {
    for (const Send& send : actions_of<Send>(plan.chunks[ring])) {
      EXPECT_GE(send.range.begin, 40 * ring);
      EXPECT_LE(send.range.end, 40 * (ring + 1));
      EXPECT_EQ(send.range.size(), 10U);
    }
  }
}

TEST(MultiRing, AdvancesAllRingsChunkByChunk) {
  const RankPlan plan = two_hosts_of_two(1, {.rings = 2, .chunks = 2});
  ASSERT_EQ(plan.chunks.size(), 4U);
  std::vector<std::size_t> begins;
  for (const Chunk& chunk : plan.chunks) {
    std::size_t begin = 80;
    for (const Send& send : actions_of<Send>(chunk)) {
      begin = std::min(begin, send.range.begin);
    }
    begins.push_back(begin / 20 * 20);
  }
  EXPECT_EQ(begins, (std::vector<std::size_t>{0, 40, 20, 60}));
}

TEST(MultiRing, SendsAsMuchWithThreeRingsAsWithOne) {
  for (const int rings : {1, 3}) {
    std::size_t sent = 0;
    for (const std::size_t size : sizes_sent(
             make_plan(find("multi_ring"), ranks_on_hosts(1, 4), 0, 1200, {.rings = rings}))) {
      sent += size;
    }
    EXPECT_EQ(sent, 2U * 3 * 300) << rings;
  }
}

}  // namespace
}  // namespace cnn::allreduce
