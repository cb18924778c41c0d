#include "bench/compare/difference.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <iterator>
#include <vector>

#include "runtime/error.h"

namespace cnn::compare {
namespace {

// The extra hours of sleep from two drugs in Student's paper (Biometrika 6, 1908). Statistics
// programs use this example, so the results are known.
constexpr std::array first_drug{0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0};
constexpr std::array second_drug{1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4};

TEST(Difference, IsWelchsForStudentsSleepData) {
  const Difference found = independent_difference(first_drug, second_drug);
  EXPECT_NEAR(found.estimate, 1.58, 1e-12);
  EXPECT_NEAR(found.estimate / found.error, 1.8608, 1e-4);
  EXPECT_NEAR(found.degrees, 17.776, 1e-3);
  EXPECT_NEAR(found.p_slower(), 0.07939 / 2, 1e-5);
  EXPECT_NEAR(found.lower(0.975), -0.2054832, 1e-6);
  EXPECT_NEAR(found.upper(0.975), 3.3654832, 1e-6);
}

TEST(Difference, IsStudentsForPairsOfHisSleepData) {
  std::vector<double> more_sleep;
  std::ranges::transform(second_drug, first_drug, std::back_inserter(more_sleep), std::minus());
  const Difference found = paired_difference(more_sleep);
  EXPECT_TRUE(found.paired);
  EXPECT_NEAR(found.estimate / found.error, 4.0621, 1e-4);
  EXPECT_EQ(found.degrees, 9);
  EXPECT_NEAR(found.p_slower(), 0.002833 / 2, 1e-6);
  EXPECT_NEAR(found.p_faster(), 1 - 0.002833 / 2, 1e-6);
  EXPECT_NEAR(found.lower(0.975), 0.7001142, 1e-6);
}

TEST(Difference, IsUncertainForSingleRuns) {
  const std::array one{1.0}, other{2.0};
  for (const Difference& found :
       {independent_difference(one, other), paired_difference(std::array{1.0})}) {
    EXPECT_EQ(found.estimate, 1);
    EXPECT_TRUE(std::isinf(found.error));
    EXPECT_EQ(found.p_slower(), 0.5);
    EXPECT_EQ(found.upper(0.9), std::numeric_limits<double>::infinity());
  }
}

TEST(Difference, IsCertainForRunsWithoutScatter) {
  const std::array same{1.0, 1.0, 1.0}, more{1.5, 1.5, 1.5};
  EXPECT_EQ(independent_difference(same, more).p_slower(), 0);
  EXPECT_EQ(independent_difference(same, same).p_slower(), 1);
  EXPECT_EQ(paired_difference(std::array{0.5, 0.5, 0.5}).p_faster(), 1);
}

TEST(Difference, ScalesItsErrorToMoreRuns) {
  const Difference found = independent_difference(first_drug, second_drug);
  EXPECT_NEAR(with_runs(found, 10, 10).error, found.error, 1e-12);
  EXPECT_NEAR(with_runs(found, 10, 10).degrees, found.degrees, 1e-9);
  EXPECT_NEAR(with_runs(found, 40, 40).error, found.error / 2, 1e-12);
}

TEST(Difference, NeedsRuns) {
  EXPECT_THROW(paired_difference({}), Error);
  EXPECT_THROW(independent_difference({}, first_drug), Error);
}

TEST(Holm, RaisesTheSmallestMost) {
  EXPECT_THAT(holm(std::array{0.01, 0.04, 0.03, 0.005}),
              testing::Pointwise(testing::DoubleNear(1e-12), {0.03, 0.06, 0.06, 0.02}));
  EXPECT_THAT(holm(std::array{0.6, 0.7}), testing::ElementsAre(1, 1));
  EXPECT_THAT(holm(std::array{0.02}), testing::ElementsAre(0.02));
}

}  // namespace
}  // namespace cnn::compare
