#include "bench/compare/distributions.h"

#include <gtest/gtest.h>

#include "runtime/error.h"

namespace cnn::compare {
namespace {

TEST(StudentDistribution, HasTheQuantilesOfPrintedTables) {
  EXPECT_NEAR(student_quantile(0.975, 1), 12.7062047364, 1e-8);
  EXPECT_NEAR(student_quantile(0.99, 4), 3.7469473880, 1e-8);
  EXPECT_NEAR(student_quantile(0.975, 10), 2.2281388520, 1e-8);
  EXPECT_NEAR(student_quantile(0.99, 8), 2.8964594477, 1e-8);
  EXPECT_NEAR(student_quantile(0.95, 120), 1.6576508994, 1e-8);
  EXPECT_NEAR(student_quantile(0.05, 120), -1.6576508994, 1e-8);
  EXPECT_NEAR(student_quantile(0.99, 1e6), 2.3263, 1e-4) << "nearly normal";
}

TEST(StudentDistribution, IsTheCauchyDistributionWithOneDegreeOfFreedom) {
  EXPECT_NEAR(student_cdf(1, 1), 0.75, 1e-12);
  EXPECT_NEAR(student_cdf(0, 3), 0.5, 1e-12);
  EXPECT_NEAR(student_cdf(-12.7062047364, 1), 0.025, 1e-10);
}

TEST(StudentDistribution, QuantileAndProbabilityAreInverse) {
  for (const double degrees : {1.0, 2.5, 17.776, 300.0}) {
    for (const double probability : {0.0001, 0.01, 0.3, 0.5, 0.9, 0.9999}) {
      EXPECT_NEAR(student_cdf(student_quantile(probability, degrees), degrees), probability, 1e-10);
    }
  }
}

TEST(StudentDistribution, HasNoQuantileOfCertainty) { EXPECT_THROW(student_quantile(1, 5), Error); }

}  // namespace
}  // namespace cnn::compare
