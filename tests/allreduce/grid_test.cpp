#include <cstddef>
#include <gtest/gtest.h>
#include <vector>

#include "tests/allreduce/plans.h"

namespace cnn::allreduce {
namespace {

using tests::actions_of;
using tests::destinations_of;
using tests::plan_on_one_host;
using tests::proved;
using tests::rounds_of;
using tests::sizes_sent;

// The ranks of a 2 x 3 grid are 0 1 / 2 3 / 4 5.
TEST(GridOfRings, ReducesInOneDimensionAfterAnotherAndGathersInReverse) {
  const RankPlan plan = plan_on_one_host("grid_of_rings", 6, 2, 60, {.dims = {2, 3}});
  EXPECT_EQ(destinations_of(plan), (std::vector<int>{3, 4, 4, 4, 4, 3}));
  EXPECT_EQ(sizes_sent(plan), (std::vector<std::size_t>{30, 10, 10, 10, 10, 30}));
  EXPECT_EQ(rounds_of(plan), 6U);  // 2 (2 - 1) + 2 (3 - 1)
}

TEST(GridOfDirect, NeedsTwoRoundsPerDimension) {
  EXPECT_EQ(rounds_of(plan_on_one_host("grid_of_direct", 24, 7, 1000, {.dims = {4, 3, 2}})), 6U);
  EXPECT_EQ(rounds_of(plan_on_one_host("grid_of_direct", 24, 7, 1000, {.dims = {24}})), 2U);
}

TEST(GridOfRings, LeavesOutDimensionsOfOne) {
  EXPECT_EQ(destinations_of(plan_on_one_host("grid_of_rings", 4, 0, 40, {.dims = {1, 4, 1}})),
            destinations_of(plan_on_one_host("ring", 4, 0, 40)));
}

TEST(GridOfRings, StartsEachChunkInAnotherDimensionIfRotated) {
  const RankPlan plan =
      plan_on_one_host("grid_of_rings", 6, 0, 120, {.dims = {2, 3}, .chunks = 2, .rotate = true});
  ASSERT_EQ(plan.chunks.size(), 2U);
  EXPECT_EQ(actions_of<Send>(plan.chunks[0]).front().to, 1);
  EXPECT_EQ(actions_of<Send>(plan.chunks[1]).front().to, 2);
}

TEST(SharedRings, SendsBetweenHostsOnly) {
  const RankPlan plan =
      make_plan(find("shared_rings"), ranks_on_hosts(3, 2), 0, 60, {.dims = {2, 3}});
  EXPECT_EQ(destinations_of(plan), (std::vector<int>{2, 2, 2, 2}));
  EXPECT_EQ(sizes_sent(plan), std::vector<std::size_t>(4, 10));
}

TEST(SharedDirect, SendsOneSliceOfItsHostToEachOtherHostTwice) {
  for (const Traffic& traffic :
       proved("shared_direct", ranks_on_hosts(3, 2), 60, {.dims = {2, 3}})) {
    EXPECT_EQ(traffic.elements_sent, 2U * 2 * 10);
    EXPECT_EQ(traffic.messages, 4U);
  }
}

}  // namespace
}  // namespace cnn::allreduce
