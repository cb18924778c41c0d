#include <cstddef>
#include <gtest/gtest.h>
#include <vector>

#include "tests/allreduce/plans.h"

namespace cnn::allreduce {
namespace {

using tests::destinations_of;
using tests::plan_on_one_host;
using tests::proved;
using tests::rounds_of;
using tests::sizes_sent;

TEST(Halving, SendsHalvesToNearRanksFirstAndGathersThemInReverse) {
  const RankPlan plan = plan_on_one_host("halving", 8, 0, 64);
  EXPECT_EQ(destinations_of(plan), (std::vector<int>{1, 2, 4, 4, 2, 1}));
  EXPECT_EQ(sizes_sent(plan), (std::vector<std::size_t>{32, 16, 8, 8, 16, 32}));
}

TEST(Halving, NeedsTwiceTheBinaryLogarithmOfTheRanksInRounds) {
  for (int power = 1; power <= 7; ++power) {
    EXPECT_EQ(rounds_of(plan_on_one_host("halving", 1 << power, 0, 1024)),
              2 * static_cast<std::size_t>(power));
  }
}

// Ranks 0 and 1 fold: each adds six of the twelve numbers, then 0 and 2 add a half each.
TEST(Halving, SharesTheSumsOfAFoldedPair) {
  const std::vector<Traffic> traffic = proved("halving", ranks_on_hosts(1, 3), 12);
  EXPECT_EQ(traffic[0].elements_added, 12U);
  EXPECT_EQ(traffic[1].elements_added, 6U);
  EXPECT_EQ(traffic[2].elements_added, 6U);
}

TEST(Halving, ReturnsTheWholeResultToTheFoldedRank) {
  EXPECT_EQ(sizes_sent(plan_on_one_host("halving", 3, 0, 12)),
            (std::vector<std::size_t>{6, 6, 6, 12}));
  EXPECT_EQ(destinations_of(plan_on_one_host("halving", 3, 0, 12)), (std::vector<int>{1, 2, 2, 1}));
}

}  // namespace
}  // namespace cnn::allreduce
