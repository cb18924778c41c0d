#include "bench/report/running_speed.h"

#include <gtest/gtest.h>
#include <random>
#include <string>
#include <vector>

#include "bench/report/reporter.h"
#include "runtime/error.h"

namespace cnn::bench {
namespace {

// Step times with outliers and repeated values.
std::vector<double> random_times(std::size_t count) {
  std::mt19937_64 random(7);
  std::uniform_int_distribution<int> milliseconds(40, 60);
  std::vector<double> times;
  for (std::size_t i = 0; i < count; ++i) {
    times.push_back((i % 17 == 0 ? 10 : 1) * 1e-3 * milliseconds(random));
  }
  return times;
}

TEST(RunningSpeed, EqualsTheFormulasOverTheWholeListAfterEachStep) {
  const std::vector<double> times = random_times(2500);
  for (const double ewma_weight : {0.0, 0.1, 1.0}) {
    RunningSpeed running(32, ewma_weight);
    for (std::size_t count = 1; count <= times.size(); ++count) {
      running.add(times[count - 1]);
      if (count > 40 && count % 97 != 0) {
        continue;
      }
      const Speed expected = speed(std::span(times).first(count), 32, ewma_weight);
      const Speed found = running.speed();
      ASSERT_EQ(found.mean, expected.mean) << count;
      ASSERT_EQ(found.jitter, expected.jitter) << count;
      ASSERT_NEAR(found.uncertainty, expected.uncertainty, 1e-9 * expected.mean) << count;
      ASSERT_EQ(step_line(1, found, 0, {}), step_line(1, expected, 0, {})) << count;
    }
  }
}

TEST(RunningSpeed, HasNeitherUncertaintyNorJitterOfEqualSteps) {
  RunningSpeed running(4);
  for (int step = 0; step < 3000; ++step) {
    running.add(0.3);
  }
  EXPECT_EQ(running.speed().uncertainty, 0);
  EXPECT_EQ(running.speed().jitter, 0);
}

TEST(RunningSpeed, RefusesToDescribeNothing) {
  EXPECT_THROW(RunningSpeed(4).speed(), Error);
  EXPECT_THROW(RunningAverage().seconds(), Error);
}

TEST(RunningAverage, EqualsTheFormulaOverTheWholeList) {
  const std::vector<double> times = random_times(100);
  RunningAverage plain, weighted(0.25);
  for (const double time : times) {
    plain.add(time);
    weighted.add(time);
  }
  EXPECT_EQ(plain.seconds(), average_seconds(times));
  EXPECT_EQ(weighted.seconds(), average_seconds(times, 0.25));
}

TEST(SortedValues, AreInOrderWhateverTheOrderOfInsertion) {
  for (const int step : {1, 7, 4999}) {  // without a common divisor with 5000
    SortedValues values;
    for (int i = 0; i < 5000; ++i) {
      values.insert(i * step % 5000);
    }
    ASSERT_EQ(values.size(), 5000U);
    for (std::size_t rank = 0; rank < values.size(); ++rank) {
      ASSERT_EQ(values[rank], static_cast<double>(rank)) << step;
    }
  }
}

}  // namespace
}  // namespace cnn::bench
