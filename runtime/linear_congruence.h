#pragma once

#include <cstddef>
#include <cstdint>

namespace cnn {

// Knuth's 64-bit linear congruential generator, for searches with the same result on every machine.
// Returns the upper half of the state: the low bits are poor.
class LinearCongruence {
 public:
  std::size_t next() {
    state_ = state_ * 6364136223846793005ULL + 1442695040888963407ULL;
    return static_cast<std::size_t>(state_ >> 33U);
  }

 private:
  std::uint64_t state_ = 1;
};

}  // namespace cnn
