#include "runtime/seconds_since.h"

#include <chrono>
#include <gtest/gtest.h>

namespace cnn {
namespace {

using std::chrono::steady_clock;

TEST(InSeconds, ConvertsDurationsOfEveryUnit) {
  static_assert(in_seconds(std::chrono::milliseconds(1500)) == 1.5);
  static_assert(in_seconds(std::chrono::minutes(-2)) == -120);
  EXPECT_DOUBLE_EQ(in_seconds(std::chrono::nanoseconds(250)), 250e-9);
}

TEST(SecondsSince, LiesBetweenTheReadingsOfTheClockAroundIt) {
  const steady_clock::time_point start = steady_clock::now() - std::chrono::hours(1);
  const double before = 3600;
  const double passed = seconds_since(start);
  const double after = in_seconds(steady_clock::now() - start);
  EXPECT_GE(passed, before);
  EXPECT_LE(passed, after);
}

}  // namespace
}  // namespace cnn
