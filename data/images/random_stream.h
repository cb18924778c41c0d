#pragma once

#include <cstdint>

#include "data/random.h"

namespace cnn::data {

// Random numbers of one example: a function of seed and position only, so that no thread, rank or
// restart changes them.
class RandomStream {
 public:
  RandomStream(std::uint64_t seed, std::int64_t position)
      : key_(random_bits(seed, static_cast<std::uint64_t>(position))) {}

  std::uint64_t bits() { return random_bits(key_, counter_++); }
  // In [0, limit); the bias of at most limit / 2^64 does not matter here.
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
