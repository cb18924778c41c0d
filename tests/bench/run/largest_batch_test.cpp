#include "bench/run/largest_batch.h"

#include <gtest/gtest.h>
#include <vector>

namespace cnn::bench {
namespace {

// 100 bytes of weights and 10 for each example, and a workspace that some batches need.
std::optional<std::size_t> bytes(std::int64_t batch) {
  return 100 + 10 * static_cast<std::size_t>(batch) + (batch % 7 == 0 ? 3 : 0);
}

TEST(LargestBatch, IsFoundFromBelowAndFromAbove) {
  // 1000 bytes: 90 examples take exactly 1000 (90 is no multiple of 7).
  EXPECT_EQ(largest_batch(1000, 8, bytes), 90);
  EXPECT_EQ(largest_batch(1000, 90, bytes), 90);
  EXPECT_EQ(largest_batch(1000, 91, bytes), 90);
  EXPECT_EQ(largest_batch(1000, 100000, bytes), 90);
  EXPECT_EQ(largest_batch(1000, 1, bytes), 90);
  EXPECT_EQ(largest_batch(999, 8, bytes), 89);
}

TEST(LargestBatch, IsNoneWhereOneExampleIsTooMuch) {
  EXPECT_EQ(largest_batch(109, 32, bytes), 0);
  EXPECT_EQ(largest_batch(110, 32, bytes), 1);
}

TEST(LargestBatch, StaysBelowWhatTheBackendCannotRun) {
  const BytesOfBatch bounded = [](std::int64_t batch) {
    return batch <= 50 ? bytes(batch) : std::nullopt;
  };
  EXPECT_EQ(largest_batch(1000, 8, bounded), 50);
  EXPECT_EQ(largest_batch(1000, 80, bounded), 50);
}

TEST(LargestBatch, TakesFewTrialsWhereMemoryIsLinear) {
  int trials = 0;
  const BytesOfBatch counted = [&](std::int64_t batch) {
    ++trials;
    return std::optional<std::size_t>(5000 + 37 * static_cast<std::size_t>(batch));
  };
  EXPECT_EQ(largest_batch(1'000'000, 64, counted), (1'000'000 - 5000) / 37);
  EXPECT_LE(trials, 5);
}

}  // namespace
}  // namespace cnn::bench
