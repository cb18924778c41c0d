#include "bench/machine/device_speeds.h"

#include <gtest/gtest.h>

#include "runtime/cpu/device.h"

namespace cnn::bench {
namespace {

// Other load can make copies slower than the emulated link, but nothing makes them faster.
constexpr double slack = 1.02;

TEST(MeasureLink, FindsTheSpeedOfEachDirection) {
  CpuDevice device(CpuOptions{.link = {.out = 4e9, .in = 1e9}});
  const std::optional<Link> link = measure_link(device);
  ASSERT_TRUE(link);
  EXPECT_GT(link->in, 0);
  EXPECT_GT(link->out, 0);
  EXPECT_LE(link->in, slack * 1e9);
  EXPECT_LE(link->out, slack * 4e9);
}

TEST(MeasureLink, FindsThatDirectionsShareABus) {
  CpuDevice device(CpuOptions{.link = {.out = 1e9, .in = 1e9, .both = 1e9}});
  const std::optional<Link> link = measure_link(device);
  ASSERT_TRUE(link);
  EXPECT_GT(link->both, 0);
  EXPECT_LE(link->both, slack * 1e9);
}

TEST(MeasureLink, IsNothingWhereMemoryIsShort) {
  CpuDevice device(CpuOptions{.memory_limit = std::size_t{1} << 20U});
  EXPECT_FALSE(measure_link(device));
  EXPECT_FALSE(measure_memory_speed(device, 0));
}

TEST(MeasureMemorySpeed, CountsWhatIsReadAndWritten) {
  CpuDevice device;
  EXPECT_GT(measure_memory_speed(device, 0).value_or(0), 1e7);
}

// Two buffers of 64 MiB fit in this memory, but not two that are far larger than the cache.
TEST(MeasureMemorySpeed, CopiesFarMoreThanACacheHolds) {
  CpuDevice device(CpuOptions{.memory_limit = std::size_t{160} << 20U});
  EXPECT_TRUE(measure_memory_speed(device, 1 << 20));
  EXPECT_FALSE(measure_memory_speed(device, 32 << 20));
}

}  // namespace
}  // namespace cnn::bench
