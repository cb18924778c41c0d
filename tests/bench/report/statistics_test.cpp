#include "bench/report/statistics.h"

#include <gtest/gtest.h>
#include <vector>

#include "runtime/error.h"
#include "runtime/median.h"

namespace cnn::bench {
namespace {

const std::vector<double> four_times{0.1, 0.2, 0.4, 0.25};

TEST(Statistics, GiveTheOriginalsNumbers) {
  const Speed result = speed(four_times, 10);
  EXPECT_NEAR(result.mean, 42.10526, 1e-5);
  EXPECT_NEAR(result.uncertainty, 14.07291, 1e-5);
  EXPECT_NEAR(result.jitter, 18.5325, 1e-5);
}

TEST(Statistics, GivePercentilesBetweenValues) {
  const std::vector<double> values{5, 1, 4, 2, 3};
  EXPECT_EQ(percentile(values, 0.5), median(values));
  EXPECT_DOUBLE_EQ(percentile(values, 0), 1);
  EXPECT_DOUBLE_EQ(percentile(values, 0.9), 4.6);
  EXPECT_DOUBLE_EQ(percentile(values, 1), 5);
  EXPECT_EQ(percentile(four_times, 0.5), median(four_times)) << "also for an even count";
  EXPECT_EQ(percentile({7}, 0.99), 7);
  EXPECT_THROW(percentile({}, 0.5), Error);
}

TEST(Statistics, WeighNewerStepsMoreOnDemand) {
  EXPECT_NEAR(speed(four_times, 10, 0.5).mean, 36.58537, 1e-5);
  EXPECT_NEAR(speed(four_times, 10, 1).mean, 40, 1e-9);  // only the newest step
  EXPECT_NEAR(speed(four_times, 10, 0.5).uncertainty, 14.07291, 1e-5);
}

TEST(Statistics, HaveNoJitterIfMostStepsAreEqual) {
  const Speed result = speed(std::vector<double>{0.1, 0.2, 0.1}, 10);
  EXPECT_NEAR(result.mean, 75.0, 1e-9);
  EXPECT_NEAR(result.uncertainty, 13.60828, 1e-5);
  EXPECT_EQ(result.jitter, 0.0);
}

TEST(Statistics, HaveNoUncertaintyOfOneStep) {
  const Speed result = speed(std::vector<double>{0.5}, 10);
  EXPECT_EQ(result.mean, 20);
  EXPECT_EQ(result.uncertainty, 0);
  EXPECT_EQ(result.jitter, 0);
}

TEST(Statistics, RefuseToDescribeNothing) {
  EXPECT_THROW(speed({}, 10), Error);
  EXPECT_THROW(average_seconds({}), Error);
}

TEST(Statistics, CountTheWholeRun) {
  EXPECT_EQ(total_speed(100, 32, 50), 64);
  EXPECT_EQ(total_speed(100, 32, 50, 2), 128);
  EXPECT_EQ(total_speed(0, 32, 50), 0);
  EXPECT_EQ(total_speed(-5, 32, 50), 0);
  EXPECT_EQ(total_speed(10, 32, 0), 0);
}

}  // namespace
}  // namespace cnn::bench
