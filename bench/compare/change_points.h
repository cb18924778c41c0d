#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace cnn::compare {

// Change-point detection by E-divisive (Matteson and James, 2014), as Hunter and Apache Otava apply
// it to benchmark histories: splits a series recursively where the energy distance of the two parts
// is greatest, as long as a permutation test rejects chance.

struct ChangeSearch {
  double significance = 0.01;  // probability below which chance counts as excluded
  std::size_t permutations = 499;
  std::uint64_t seed = 1;  // equal seeds give equal results
};

// Values from `index` on differ from those before.
struct ChangePoint {
  std::size_t index = 0;
  double p = 1;  // of the permutation test
};

// Minimum number of values between two changes.
inline constexpr std::size_t min_segment = 3;

// Returns the minimum length of a series: with fewer values even a perfect step has a p above the
// significance.
std::size_t min_values(double significance);

// Returns the changes in order. On a series without a change it finds any with a probability of at
// most `significance`.
std::vector<ChangePoint> find_changes(std::span<const double> values, const ChangeSearch& search);

}  // namespace cnn::compare
