#include "bench/plan/largest_size.h"

#include <gtest/gtest.h>
#include <vector>

namespace cnn::bench {
namespace {

// Weights take 100 bytes and each example 10; some batches also need a workspace.
std::optional<std::size_t> bytes(std::int64_t batch) {
  return 100 + 10 * static_cast<std::size_t>(batch) + (batch % 7 == 0 ? 3 : 0);
}

TEST(LargestSize, IsFoundFromBelowAndFromAbove) {
  // 90 examples take exactly 1000 bytes, because 90 is not a multiple of 7.
  EXPECT_EQ(largest_size(1000, 1, 8, bytes), 90);
  EXPECT_EQ(largest_size(1000, 1, 90, bytes), 90);
  EXPECT_EQ(largest_size(1000, 1, 91, bytes), 90);
  EXPECT_EQ(largest_size(1000, 1, 100000, bytes), 90);
  EXPECT_EQ(largest_size(1000, 1, 1, bytes), 90);
  EXPECT_EQ(largest_size(999, 1, 8, bytes), 89);
}

TEST(LargestSize, IsNoneWhereOneExampleIsTooMuch) {
  EXPECT_EQ(largest_size(109, 1, 32, bytes), 0);
  EXPECT_EQ(largest_size(110, 1, 32, bytes), 1);
}

TEST(LargestSize, StaysBelowWhatTheBackendCannotRun) {
  const BytesOfSize bounded = [](std::int64_t batch) {
    return batch <= 50 ? bytes(batch) : std::nullopt;
  };
  EXPECT_EQ(largest_size(1000, 1, 8, bounded), 50);
  EXPECT_EQ(largest_size(1000, 1, 80, bounded), 50);
}

TEST(LargestSize, TakesFewTrialsWhereMemoryIsLinear) {
  int trials = 0;
  const BytesOfSize counted = [&](std::int64_t batch) {
    ++trials;
    return std::optional<std::size_t>(5000 + 37 * static_cast<std::size_t>(batch));
  };
  EXPECT_EQ(largest_size(1'000'000, 1, 64, counted), (1'000'000 - 5000) / 37);
  EXPECT_LE(trials, 5);
}

TEST(LargestSize, StartsAtTheLeastThatTheBackendRuns) {
  const BytesOfSize bounded = [](std::int64_t size) {
    return size >= 5 ? bytes(size) : std::nullopt;
  };
  EXPECT_EQ(largest_size(1000, 5, 8, bounded), 90);
  EXPECT_EQ(largest_size(1000, 5, 5, bounded), 90);
  EXPECT_EQ(largest_size(149, 5, 8, bounded), 0);
}

TEST(LastThatRuns, IsFoundByHalving) {
  int trials = 0;
  const auto runs = [&](std::int64_t size) {
    ++trials;
    return size < 777;
  };
  EXPECT_EQ(last_that_runs(1, 1025, runs), 776);
  EXPECT_LE(trials, 10);
  EXPECT_EQ(last_that_runs(776, 777, runs), 776);
}

}  // namespace
}  // namespace cnn::bench
