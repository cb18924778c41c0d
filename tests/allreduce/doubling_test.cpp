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

TEST(Doubling, ExchangesWholeBuffersAtDoubledDistances) {
  const RankPlan plan = plan_on_one_host("doubling", 8, 5, 100);
  EXPECT_EQ(destinations_of(plan), (std::vector<int>{4, 7, 1}));
  EXPECT_EQ(sizes_sent(plan), std::vector<std::size_t>(3, 100));
  EXPECT_EQ(rounds_of(plan), 3U);
}

TEST(Doubling, NeedsTheBinaryLogarithmOfTheRanksInRounds) {
  for (int power = 1; power <= 7; ++power) {
    EXPECT_EQ(rounds_of(plan_on_one_host("doubling", 1 << power, 0, 10)),
              static_cast<std::size_t>(power));
  }
}

// Ranks 0 and 1, and 2 and 3 fold in pairs, so that 0, 2, 4 and 5 go on.
TEST(Doubling, FoldsPairsWhereRanksAreNoPowerOfTwo) {
  EXPECT_EQ(destinations_of(plan_on_one_host("doubling", 6, 1, 10)), (std::vector<int>{0}));
  EXPECT_EQ(destinations_of(plan_on_one_host("doubling", 6, 0, 10)), (std::vector<int>{2, 4, 1}));
  EXPECT_EQ(destinations_of(plan_on_one_host("doubling", 6, 4, 10)), (std::vector<int>{5, 0}));
  EXPECT_TRUE(actions_of<Sum>(plan_on_one_host("doubling", 6, 3, 10)).empty());
}

TEST(Doubling, FinishesTheSumInTheLastRoundOnly) {
  const std::vector<Sum> sums = actions_of<Sum>(plan_on_one_host("doubling", 8, 2, 10));
  ASSERT_EQ(sums.size(), 3U);
  EXPECT_FALSE(sums[0].last);
  EXPECT_FALSE(sums[1].last);
  EXPECT_TRUE(sums[2].last);
}

}  // namespace
}  // namespace cnn::allreduce
