#pragma once

#include <cstdint>

#include "data/random.h"

namespace cnn::data {

// The random numbers of one example: they depend on seed and position only, not on threads, ranks
// or restarts.
class RandomStream {
 public:
  RandomStream(std::uint64_t seed, std::int64_t position)
      : key_(random_bits(seed, static_cast<std::uint64_t>(position))) {}

  std::uint64_t bits() { return random_bits(key_, counter_++); }
  // Returns a number in [0, limit); its bias of at most limit / 2^64 is negligible.
  std::int64_t below(std::int64_t limit) {
    return static_cast<std::int64_t>(bits() % static_cast<std::uint64_t>(limit));
  }
  float uniform(float least, float most) {  // in [least, most)
    constexpr float unit = 1.0F / (1U << 24U);
    return least + (most - least) * (static_cast<float>(bits() >> 40U) * unit);
  }

 private:
  std::uint64_t key_, counter_ = 0;
};

}  // namespace cnn::data
