#include "data/permutation.h"

#include <array>
#include <cstdlib>
#include <gtest/gtest.h>
#include <vector>

#include "runtime/error.h"

namespace cnn::data {
namespace {

class PermutationOfSize : public testing::TestWithParam<std::int64_t> {};

TEST_P(PermutationOfSize, HoldsEveryNumberOnce) {
  const std::int64_t size = GetParam();
  const Permutation permutation(size, 1234, 7);
  std::vector<int> seen(static_cast<std::size_t>(size));
  for (std::int64_t i = 0; i < size; ++i) {
    const std::int64_t value = permutation(i);
    ASSERT_TRUE(value >= 0 && value < size) << value;
    ++seen[static_cast<std::size_t>(value)];
  }
  EXPECT_EQ(seen, std::vector<int>(static_cast<std::size_t>(size), 1));
}

INSTANTIATE_TEST_SUITE_P(Sizes, PermutationOfSize,
                         testing::Values(1, 2, 3, 4, 5, 16, 17, 1000, 1024, 50000, 60000));

TEST(Permutation, DependsOnSeedAndEpoch) {
  int same_seed = 0;
  int same_epoch = 0;
  for (std::int64_t i = 0; i < 1000; ++i) {
    same_seed += Permutation(1000, 1, 0)(i) == Permutation(1000, 1, 1)(i) ? 1 : 0;
    same_epoch += Permutation(1000, 1, 0)(i) == Permutation(1000, 2, 0)(i) ? 1 : 0;
  }
  EXPECT_LT(same_seed, 10);  // chance alone gives one
  EXPECT_LT(same_epoch, 10);
}

// Over 2000 epochs, each example falls into each tenth of an epoch 200 times on average, with a
// standard deviation of 13.
TEST(Permutation, ShufflesEvenly) {
  std::array<std::array<int, 10>, 10> counts{};
  for (std::int64_t epoch = 0; epoch < 2000; ++epoch) {
    const Permutation permutation(10, 99, epoch);
    for (std::int64_t i = 0; i < 10; ++i) {
      ++counts.at(static_cast<std::size_t>(i)).at(static_cast<std::size_t>(permutation(i)));
    }
  }
  for (const auto& row : counts) {
    for (const int count : row) {
      EXPECT_NEAR(count, 200, 70);
    }
  }
}

// Neighbours in the file must not stay neighbours. In a random order their mean distance is a third
// of the size.
TEST(Permutation, SeparatesNeighbours) {
  const Permutation permutation(50000, 1, 1);
  double distance = 0;
  for (std::int64_t i = 0; i + 1 < 50000; ++i) {
    distance += static_cast<double>(std::abs(permutation(i) - permutation(i + 1)));
  }
  EXPECT_NEAR(distance / 49999 / 50000, 1.0 / 3, 0.01);
}

TEST(Permutation, NeedsSomethingToOrder) { EXPECT_THROW(Permutation(0, 1, 1), Error); }

}  // namespace
}  // namespace cnn::data
