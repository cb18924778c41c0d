#include "bench/machine/processors.h"

#include <gtest/gtest.h>
#include <vector>

namespace cnn::bench {
namespace {

TEST(Processors, AreCutInEqualParts) {
  const std::vector<int> five{1, 2, 5, 6, 9};
  EXPECT_EQ(part_of(five, 0, 2), (std::vector<int>{1, 2}));
  EXPECT_EQ(part_of(five, 1, 2), (std::vector<int>{5, 6, 9}));
  EXPECT_EQ(part_of(five, 0, 1), five);
}

TEST(Processors, AreTakenInTurnWhereRanksAreMore) {
  const std::vector<int> two{4, 7};
  EXPECT_EQ(part_of(two, 0, 3), std::vector<int>{4});
  EXPECT_EQ(part_of(two, 1, 3), std::vector<int>{7});
  EXPECT_EQ(part_of(two, 2, 3), std::vector<int>{4});
}

}  // namespace
}  // namespace cnn::bench
