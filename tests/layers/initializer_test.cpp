#include "layers/initializer.h"

#include <algorithm>
#include <cmath>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace cnn::layers {
namespace {

using testing::Each;

constexpr Initializer normal{Initializer::Kind::truncated_normal, 0, 1};

std::vector<float> draws(const Initializer& initializer, std::uint64_t seed, std::string_view name,
                         std::size_t count) {
  std::vector<float> values(count);
  fill(initializer, seed, name, values);
  return values;
}

struct Moments {
  double mean = 0, variance = 0;
};

Moments moments(const std::vector<float>& values) {
  Moments m;
  for (const float value : values) {
    m.mean += value / static_cast<double>(values.size());
  }
  for (const float value : values) {
    m.variance += (value - m.mean) * (value - m.mean) / static_cast<double>(values.size());
  }
  return m;
}

TEST(Initializer, FillsWithAConstant) {
  EXPECT_THAT(draws({Initializer::Kind::constant, 0.1, 5}, 1, "biases", 9), Each(0.1F));
}

// A unit normal truncated at two has the standard deviation 0.87962566103423978, by which conv()
// divides.
TEST(Initializer, DrawsTruncatedNormalsOfTheRightMoments) {
  const Moments m = moments(draws(normal, 1, "w", 1'000'000));
  EXPECT_NEAR(m.mean, 0, 0.003);
  EXPECT_NEAR(std::sqrt(m.variance), 0.87962566103423978, 0.002);
}

TEST(Initializer, DrawsUniformValuesOfTheRightMomentsAndBounds) {
  const std::vector<float> values = draws({Initializer::Kind::uniform, 3, 2}, 1, "w", 1'000'000);
  const Moments m = moments(values);
  EXPECT_NEAR(m.mean, 3, 0.01);
  EXPECT_NEAR(std::sqrt(m.variance), 2, 0.005);
  const auto [smallest, largest] = std::ranges::minmax(values);
  EXPECT_NEAR(smallest, 3 - 2 * std::sqrt(3), 1e-3);
  EXPECT_NEAR(largest, 3 + 2 * std::sqrt(3), 1e-3);
  EXPECT_GE(smallest, 3 - 2 * std::sqrt(3) - 1e-6);
  EXPECT_LE(largest, 3 + 2 * std::sqrt(3) + 1e-6);
}

TEST(Initializer, CutsAtTwoAndReachesTheCut) {
  const std::vector<float> values = draws(normal, 1, "w", 1'000'000);
  const auto [smallest, largest] = std::ranges::minmax(values);
  EXPECT_GE(smallest, -2);
  EXPECT_LE(largest, 2);
  EXPECT_LT(smallest, -1.99);
  EXPECT_GT(largest, 1.99);
}

// The expected distribution P(Z <= t | |Z| <= 2) comes from the standard library's erf.
TEST(Initializer, DrawsTheWholeDistribution) {
  std::vector<float> values = draws(normal, 3, "w", 200'000);
  std::ranges::sort(values);
  const double mass = std::erf(std::sqrt(2.0));
  double largest = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double expected = (std::erf(values[i] / std::sqrt(2.0)) / mass + 1) / 2;
    const double observed = (static_cast<double>(i) + 0.5) / static_cast<double>(values.size());
    largest = std::max(largest, std::abs(expected - observed));
  }
  EXPECT_LT(largest, 1.63 / std::sqrt(200'000.0));  // Kolmogorov-Smirnov test at 1 %
}

TEST(Initializer, ScalesByMeanAndStddev) {
  const std::vector<float> unit = draws(normal, 1, "w", 100);
  const std::vector<float> scaled = draws({normal.kind, 3, 0.5}, 1, "w", 100);
  for (std::size_t i = 0; i < unit.size(); ++i) {
    EXPECT_NEAR(scaled[i], 3 + 0.5 * unit[i], 1e-6);
  }
}

TEST(Initializer, DependsOnSeedAndNameOnly) {
  EXPECT_EQ(draws(normal, 1, "w", 50), draws(normal, 1, "w", 50));
  EXPECT_NE(draws(normal, 1, "w", 50), draws(normal, 2, "w", 50));
  EXPECT_NE(draws(normal, 1, "w", 50), draws(normal, 1, "v", 50));
}

// Several threads fill a large tensor.
TEST(Initializer, DrawsTheSameWhateverTheSizeOfTheTensor) {
  const std::vector<float> few = draws(normal, 1, "w", 1000);
  const std::vector<float> many = draws(normal, 1, "w", 3'000'001);
  EXPECT_TRUE(std::equal(few.begin(), few.end(), many.begin()));
}

// Published test vectors: splitmix64's first outputs from state 1234567, and FNV-1a of "foobar".
TEST(Initializer, UsesTheNamedGenerators) {
  EXPECT_EQ(random_bits(1234567, 0), 6457827717110365317U);
  EXPECT_EQ(random_bits(1234567, 1), 3203168211198807973U);
  EXPECT_EQ(fnv1a("foobar"), 0x85944171F73967E8U);
  EXPECT_EQ(fnv1a(""), 0xCBF29CE484222325U);
}

}  // namespace
}  // namespace cnn::layers
