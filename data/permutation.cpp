#include "data/permutation.h"

#include <cmath>

#include "data/random.h"
#include "runtime/error.h"

namespace cnn::data {
namespace {

// Four ideal rounds make a strong pseudo-random permutation (Luby and Rackoff, 1988); more are
// needed because a round on a small side has few bits.
constexpr int rounds = 8;

std::uint64_t side_of(std::uint64_t size) {
  auto edge = static_cast<std::uint64_t>(std::sqrt(static_cast<double>(size)));
  while (edge * edge < size) {
    ++edge;
  }
  return edge;
}

}  // namespace

Permutation::Permutation(std::int64_t size, std::uint64_t seed, std::int64_t epoch)
    : size_(static_cast<std::uint64_t>(size)),
      side_(side_of(size_)),
      key_(random_bits(seed, static_cast<std::uint64_t>(epoch))) {
  check(size > 0, "a data set without examples");
}

std::int64_t Permutation::operator()(std::int64_t position) const {
  auto value = static_cast<std::uint64_t>(position);
  do {
    std::uint64_t left = value / side_;
    std::uint64_t right = value % side_;
    for (std::uint64_t round = 0; round < rounds; ++round) {
      const std::uint64_t sum = (left + random_bits(key_ + round, right)) % side_;
      left = right;
      right = sum;
    }
    value = left * side_ + right;
  } while (value >= size_);
  return static_cast<std::int64_t>(value);
}

}  // namespace cnn::data
