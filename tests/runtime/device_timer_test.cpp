#include "runtime/device_timer.h"

#include <chrono>
#include <cmath>
#include <functional>
#include <gtest/gtest.h>
#include <span>
#include <thread>
#include <vector>

#include "runtime/cpu/device.h"

namespace cnn::tests {
namespace {

// Returns work that takes that long and counts its runs.
std::function<void()> sleeping(DeviceTimer& timer, std::chrono::milliseconds length, int& runs) {
  return [&timer, length, &runs] {
    timer.stream().host([length, &runs] {
      std::this_thread::sleep_for(length);
      ++runs;
    });
  };
}

TEST(DeviceTimer, RunsAlternativesSeveralTimesButNotTheHopelessOnes) {
  CpuDevice device;
  DeviceTimer timer(device);
  int fast = 0, near = 0, slow = 0;
  const std::vector<std::function<void()>> alternatives{
      sleeping(timer, std::chrono::milliseconds(150), slow),
      sleeping(timer, std::chrono::milliseconds(10), fast),
      sleeping(timer, std::chrono::milliseconds(12), near)};
  const std::vector<double> seconds = timer.seconds_of_each(alternatives);
  ASSERT_EQ(seconds.size(), 3U);
  EXPECT_GE(seconds[0], 0.15);
  EXPECT_GE(seconds[1], 0.01);
  EXPECT_GE(seconds[2], 0.012);
  EXPECT_LT(seconds[1], 0.1);
  EXPECT_EQ(slow, 2) << "one warm-up run and one timed run";
  EXPECT_GT(fast, 2);
  EXPECT_TRUE(timer.seconds_of_each({}).empty());
}

TEST(DeviceTimer, FillsMemoryWithNumbersAroundOne) {
  CpuDevice device;
  DeviceTimer timer(device);
  const Buffer memory = timer.filled(4096, DataType::f32);
  timer.stream().synchronize();
  bool negative = false, positive = false;
  for (const float value : std::span(reinterpret_cast<const float*>(memory.data()), 1024)) {
    EXPECT_GE(std::abs(value), 0.125F);
    EXPECT_LT(std::abs(value), 2.0F);
    (value < 0 ? negative : positive) = true;
  }
  EXPECT_TRUE(negative && positive);
}

}  // namespace
}  // namespace cnn::tests
