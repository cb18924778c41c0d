#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace cnn::compare {

// Change-point detection by E-divisive (Matteson and James, 2014), as Hunter and Apache Otava use
// it for histories of benchmarks: a series is divided again and again where the energy distance of
// the two parts is greatest, as long as a permutation test says that chance does not do this.

struct ChangeSearch {
  double significance = 0.01;  // a change is one that chance would show more rarely
  std::size_t permutations = 499;
  std::uint64_t seed = 1;  // equal seeds give equal results
};

// The values from `index` on differ from those before.
struct ChangePoint {
  std::size_t index = 0;
  double p = 1;  // of the permutation test
};

// Fewer values than this between two changes are not told apart.
inline constexpr std::size_t least_segment = 3;

// With fewer values than this even a perfect step has a p above the significance.
std::size_t least_values(double significance);

// Returns the changes in the order of their places. On a series without a change it finds any with
// a probability of at most `significance`.
std::vector<ChangePoint> find_changes(std::span<const double> values, const ChangeSearch& search);

}  // namespace cnn::compare
