#include <cstddef>
#include <gtest/gtest.h>
#include <vector>

#include "tests/allreduce/plans.h"

namespace cnn::allreduce {
namespace {

using tests::actions_of;
using tests::destinations_of;
using tests::plan_on_one_host;
using tests::sizes_sent;

TEST(Shuffle, SendsWholeBuffersToAndFromASingleOwner) {
  const RankPlan owner = plan_on_one_host("shuffle", 4, 0, 100, {.owners = 1});
  EXPECT_EQ(destinations_of(owner), (std::vector<int>{1, 2, 3}));
  EXPECT_EQ(sizes_sent(owner), std::vector<std::size_t>(3, 100));
  const RankPlan other = plan_on_one_host("shuffle", 4, 2, 100, {.owners = 1});
  EXPECT_EQ(destinations_of(other), (std::vector<int>{0}));
  EXPECT_EQ(sizes_sent(other), (std::vector<std::size_t>{100}));
  EXPECT_TRUE(actions_of<Sum>(other).empty());
}

TEST(Shuffle, CutsTheBufferAmongItsOwnersAlone) {
  for (int rank = 0; rank < 5; ++rank) {
    const std::vector<Sum> sums =
        actions_of<Sum>(plan_on_one_host("shuffle", 5, rank, 90, {.owners = 3}));
    ASSERT_EQ(sums.size(), rank < 3 ? 1U : 0U);
    if (!sums.empty()) {
      const std::size_t begin = 30 * static_cast<std::size_t>(rank);
      EXPECT_EQ(sums.front().range, (Range{begin, begin + 30}));
    }
  }
}

TEST(Shuffle, IsDirectExchangeIfAllRanksOwn) {
  for (int rank = 0; rank < 3; ++rank) {
    EXPECT_EQ(sizes_sent(plan_on_one_host("shuffle", 3, rank, 91)),
              sizes_sent(plan_on_one_host("direct", 3, rank, 91)));
    EXPECT_EQ(destinations_of(plan_on_one_host("shuffle", 3, rank, 91)),
              destinations_of(plan_on_one_host("direct", 3, rank, 91)));
  }
}

}  // namespace
}  // namespace cnn::allreduce
