#include "bench/report/histogram.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <limits>
#include <numeric>
#include <string>
#include <vector>

namespace cnn::bench {
namespace {

using testing::ElementsAre;

TEST(Histogram, CountsValuesInBucketsThatGrowByATenth) {
  Histogram histogram;
  for (const double value : {1.0, 1.0, -3.0, 0.0, 1e300}) {
    histogram.add(value);
  }
  histogram.add(std::numeric_limits<double>::quiet_NaN());
  histogram.add(-std::numeric_limits<double>::infinity());
  EXPECT_EQ(histogram.count(), 5);
  EXPECT_EQ(histogram.not_finite(), 2);
  EXPECT_EQ(histogram.min(), -3);
  EXPECT_EQ(histogram.max(), 1e300);
  const Histogram::Buckets buckets = histogram.buckets();
  double below = -std::numeric_limits<double>::max();
  std::vector<std::string> seen;
  for (std::size_t i = 0; i < buckets.limits.size(); ++i) {
    const double limit = buckets.limits[i];
    ASSERT_LT(below, limit);
    if (buckets.counts[i] > 0) {
      for (const double value : {1.0, -3.0, 0.0, 1e300}) {
        if (below <= value && value < limit) {
          seen.push_back(testing::PrintToString(value) + " x " +
                         testing::PrintToString(buckets.counts[i]));
          if (value == 1.0) {
            EXPECT_NEAR(limit / below, 1.1, 1e-9);
          }
        }
      }
    }
    below = limit;
  }
  EXPECT_THAT(seen, ElementsAre("-3 x 1", "0 x 1", "1 x 2", "1e+300 x 1"));
}

// The limits themselves and their neighbours show whether a table of buckets is exact.
TEST(Histogram, CountsAValueBelowItsLimitAndNotBelowTheOneBefore) {
  std::vector<double> values{0.0, -0.0, 5e-324, 1e-13, 1e-12, 1e19, 1e21};
  for (double limit = 1e-12; limit < 1e21; limit *= 1.1) {
    for (const double value : {limit, std::nextafter(limit, 0), std::nextafter(limit, 1e300)}) {
      values.push_back(value);
      values.push_back(-value);
    }
  }
  for (const double value : values) {
    Histogram histogram;
    histogram.add(value);
    const Histogram::Buckets buckets = histogram.buckets();
    const auto at =
        static_cast<std::size_t>(std::ranges::find(buckets.counts, 1.0) - buckets.counts.begin());
    ASSERT_LT(at, buckets.limits.size()) << value;
    EXPECT_LT(value, buckets.limits[at]);
    ASSERT_GT(at, 0U);
    EXPECT_GE(value, buckets.limits[at - 1]);
  }
}

TEST(Histogram, MergesToWhatOneOfAllValuesHas) {
  Histogram a, b, all;
  for (const double value : {0.5, -20.0, 3e-5}) {
    a.add(value);
    all.add(value);
  }
  for (const double value : {7.0, 0.0, 0.0}) {
    b.add(value);
    all.add(value);
  }
  a.merge(b);
  a.merge(Histogram());
  EXPECT_EQ(a.buckets().limits, all.buckets().limits);
  EXPECT_EQ(a.buckets().counts, all.buckets().counts);
  EXPECT_EQ(a.min(), all.min());
  EXPECT_EQ(a.max(), all.max());
  EXPECT_EQ(a.sum_of_squares(), all.sum_of_squares());
  a.remove_zeros(2);
  EXPECT_EQ(a.count(), 4);
}

Histogram histogram_of(const std::vector<double>& values) {
  Histogram histogram;
  for (const double value : values) {
    histogram.add(value);
  }
  return histogram;
}

double counted(const Histogram& histogram) {
  const std::vector<double> counts = histogram.buckets().counts;
  return std::accumulate(counts.begin(), counts.end(), 0.0);
}

TEST(Histogram, HasOneEmptyBucketWithoutValues) {
  const Histogram empty;
  EXPECT_EQ(empty.count(), 0);
  EXPECT_EQ(empty.min(), 0);
  EXPECT_EQ(empty.max(), 0);
  EXPECT_THAT(empty.buckets().counts, ElementsAre(0));
  EXPECT_THAT(empty.buckets().limits, ElementsAre(std::numeric_limits<double>::max()));
}

TEST(Histogram, CountsTheLargestAndTheSmallestDouble) {
  constexpr double largest = std::numeric_limits<double>::max();
  EXPECT_EQ(counted(histogram_of({largest, -largest, std::numeric_limits<double>::denorm_min()})),
            3);
}

TEST(Histogram, HasTheRangeOfTheValuesThatStayWhenZerosAreTakenBack) {
  Histogram positive = histogram_of({0, 2, 3, 0});
  positive.remove_zeros(2);
  EXPECT_EQ(positive.min(), 2);
  EXPECT_EQ(positive.max(), 3);
  Histogram negative = histogram_of({-2, -3, 0});
  negative.remove_zeros(1);
  EXPECT_EQ(negative.max(), -2);
  EXPECT_EQ(negative.min(), -3);
  Histogram some_left = histogram_of({0, 0, 4});
  some_left.remove_zeros(1);
  EXPECT_EQ(some_left.min(), 0);
  EXPECT_EQ(counted(some_left), 2);
  Histogram all_gone = histogram_of({0});
  all_gone.remove_zeros(1);
  EXPECT_EQ(all_gone.count(), 0);
  EXPECT_EQ(counted(all_gone), 0);
}

TEST(Histogram, MergesRangesAfterZerosAreTakenBack) {
  Histogram padded = histogram_of({0, 5});
  padded.remove_zeros(1);
  Histogram all;
  all.merge(padded);
  EXPECT_EQ(all.min(), 5);
  all.merge(histogram_of({0}));
  EXPECT_EQ(all.min(), 0);
  EXPECT_EQ(all.max(), 5);
}

TEST(Histogram, KeepsValuesThatAreNotFiniteOutOfItsRangeAndSums) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  const Histogram histogram = histogram_of({infinity, -1, -infinity});
  EXPECT_EQ(histogram.count(), 1);
  EXPECT_EQ(histogram.not_finite(), 2);
  EXPECT_EQ(histogram.max(), -1);
  EXPECT_EQ(histogram.sum(), -1);
  EXPECT_EQ(histogram.sum_of_squares(), 1);
}

}  // namespace
}  // namespace cnn::bench
