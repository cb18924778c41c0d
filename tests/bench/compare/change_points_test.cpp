#include "bench/compare/change_points.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <random>

namespace cnn::compare {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

// Normal values around a level for each of consecutive segments of so many values.
std::vector<double> levels(const std::vector<std::pair<int, double>>& segments, double scatter,
                           std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> normal(0, scatter);
  std::vector<double> values;
  for (const auto& [count, level] : segments) {
    for (int i = 0; i < count; ++i) {
      values.push_back(level + normal(random));
    }
  }
  return values;
}

std::vector<std::size_t> places(const std::vector<ChangePoint>& changes) {
  std::vector<std::size_t> places;
  for (const ChangePoint& change : changes) {
    places.push_back(change.index);
  }
  return places;
}

TEST(ChangePoints, AreWhereAStepIs) {
  EXPECT_THAT(places(find_changes(levels({{20, 1}, {20, 1.05}}, 0.005, 1), {})), ElementsAre(20));
}

TEST(ChangePoints, AreAllOfSeveral) {
  const std::vector<double> values = levels({{15, 1}, {12, 1.1}, {20, 0.95}, {9, 1.0}}, 0.005, 2);
  EXPECT_THAT(places(find_changes(values, {})), ElementsAre(15, 27, 47));
}

TEST(ChangePoints, AreFoundWithHeavyTailsToo) {
  std::mt19937_64 random(3);
  std::student_t_distribution<double> noise(2);
  std::vector<double> values;
  for (int i = 0; i < 60; ++i) {
    values.push_back((i < 30 ? 0 : 12) + noise(random));
  }
  EXPECT_THAT(places(find_changes(values, {})), ElementsAre(30));
}

TEST(ChangePoints, AreNotInConstantValues) {
  EXPECT_THAT(find_changes(std::vector<double>(50, 2.5), {}), IsEmpty());
}

TEST(ChangePoints, AreTheSameForOneSeed) {
  const std::vector<double> values = levels({{12, 1}, {12, 1.006}}, 0.005, 5);
  const auto first = find_changes(values, {.significance = 0.2, .permutations = 99});
  const auto second = find_changes(values, {.significance = 0.2, .permutations = 99});
  EXPECT_EQ(places(first), places(second));
  ASSERT_EQ(first.size(), second.size());
  for (std::size_t i = 0; i < first.size(); ++i) {
    EXPECT_EQ(first[i].p, second[i].p);
  }
}

TEST(ChangePoints, NeedAsManyValuesAsAPermutationTestCanTellApart) {
  // There are 252 choices of five of 10 values, and two are as good as a step: 2 / 252 < 0.01.
  EXPECT_EQ(min_values(0.01), 10U);
  EXPECT_EQ(min_values(0.05), 8U);
  EXPECT_THAT(find_changes(levels({{4, 1}, {5, 2}}, 0.001, 1), {}), IsEmpty());
  EXPECT_THAT(places(find_changes(levels({{5, 1}, {5, 2}}, 0.001, 1), {})), ElementsAre(5));
}

// A permutation test promises its level for values in any order that are equally likely. The bound
// is five deviations of a binomial count above the promise.
TEST(ChangePoints, AreFoundInNoiseAsRarelyAsTheSignificanceSays) {
  constexpr int series = 400;
  int normal_alarms = 0, skewed_alarms = 0;
  for (int i = 0; i < series; ++i) {
    std::mt19937_64 random(1000 + static_cast<std::uint64_t>(i));
    std::normal_distribution<double> normal;
    std::lognormal_distribution<double> skewed(0, 1.5);
    std::vector<double> a, b;
    for (int n = 0; n < 24; ++n) {
      a.push_back(normal(random));
      b.push_back(skewed(random));
    }
    const ChangeSearch search{.significance = 0.05, .permutations = 99};
    normal_alarms += find_changes(a, search).empty() ? 0 : 1;
    skewed_alarms += find_changes(b, search).empty() ? 0 : 1;
  }
  RecordProperty("normal_alarms", normal_alarms);
  RecordProperty("skewed_alarms", skewed_alarms);
  EXPECT_LT(normal_alarms, 0.05 * series + 5 * 4.4);
  EXPECT_LT(skewed_alarms, 0.05 * series + 5 * 4.4);
  EXPECT_GT(normal_alarms + skewed_alarms, 8);  // the test is no more cautious than it says
}

TEST(ChangePoints, FindThreePerCentBetweenTwentyRunsThatScatterByOne) {
  int found = 0;
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    found += find_changes(levels({{20, 0}, {20, 0.03}}, 0.01, seed), {}).empty() ? 0 : 1;
  }
  EXPECT_EQ(found, 50);
}

}  // namespace
}  // namespace cnn::compare
