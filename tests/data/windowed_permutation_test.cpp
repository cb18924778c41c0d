#include "data/windowed_permutation.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <set>
#include <vector>

namespace cnn::data {
namespace {

std::vector<std::int64_t> order_of(std::int64_t size, std::uint64_t seed, std::int64_t epoch) {
  const WindowedPermutation permutation(size, seed, epoch);
  std::vector<std::int64_t> order;
  for (std::int64_t i = 0; i < size; ++i) {
    order.push_back(permutation(i));
  }
  return order;
}

TEST(WindowedPermutation, GivesEveryElementOnce) {
  for (const std::int64_t size : {1, 31, 32, 33, 1000, 16'384, 16'385, 40'001}) {
    std::vector<std::int64_t> order = order_of(size, 7, 3);
    std::ranges::sort(order);
    for (std::int64_t i = 0; i < size; ++i) {
      ASSERT_EQ(order[static_cast<std::size_t>(i)], i) << size;
    }
  }
}

TEST(WindowedPermutation, ReadsFewRunsInAWindow) {
  constexpr std::int64_t size = 100'000;
  const std::vector<std::int64_t> order = order_of(size, 7, 0);
  const WindowedPermutation permutation(size, 7, 0);
  for (std::int64_t first = 0; first < size; first += WindowedPermutation::window) {
    const std::int64_t end = std::min(size, first + WindowedPermutation::window);
    std::set<std::int64_t> read(order.begin() + first, order.begin() + end), ahead;
    for (std::int64_t place = first; place < end; ++place) {
      ahead.insert(permutation.in_runs(place));
    }
    EXPECT_EQ(read, ahead) << "the window needs the examples that are read ahead";
  }
  // Neighbours in the order of runs are neighbours on the disk, except at the ends of runs.
  std::int64_t breaks = 0;
  for (std::int64_t place = 1; place < size; ++place) {
    breaks +=
        static_cast<int>(permutation.in_runs(place) != (permutation.in_runs(place - 1) + 1) % size);
  }
  EXPECT_LE(breaks, size / WindowedPermutation::run + 1);
}

TEST(WindowedPermutation, ShufflesAnewInEveryEpochAndForEverySeed) {
  const std::vector<std::int64_t> order = order_of(40'000, 7, 0);
  EXPECT_EQ(order, order_of(40'000, 7, 0));
  EXPECT_NE(order, order_of(40'000, 7, 1));
  EXPECT_NE(order, order_of(40'000, 8, 0));
  std::int64_t in_place = 0;
  for (std::size_t i = 1; i < order.size(); ++i) {
    in_place += static_cast<int>(order[i] == order[i - 1] + 1);
  }
  EXPECT_LT(in_place, 100) << "neighbours do not stay together";
}

}  // namespace
}  // namespace cnn::data
