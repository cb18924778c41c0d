#pragma once

#include <cstdint>

namespace cnn::data {

// A pseudo-random permutation of 0 .. size-1 that is computed, not stored: each element in constant
// time, equal for equal (size, seed, epoch). A generalised Feistel cipher on pairs (left, right) in
// [0, side)^2 >= size; values beyond size are encrypted again until they fit (Black and Rogaway,
// "Ciphers with Arbitrary Finite Domains", 2002).
class Permutation {
 public:
  Permutation(std::int64_t size, std::uint64_t seed, std::int64_t epoch);
  std::int64_t operator()(std::int64_t position) const;  // both in [0, size)

 private:
  std::uint64_t size_, side_, key_;
};

}  // namespace cnn::data
