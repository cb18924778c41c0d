#pragma once

#include <cstdint>

namespace cnn::data {

// The finaliser of splitmix64 (Steele, Lea, Flood 2014): every output bit depends on every input
// bit.
constexpr std::uint64_t mix(std::uint64_t bits) {
  bits = (bits ^ (bits >> 30)) * 0xBF58476D1CE4E5B9;
  bits = (bits ^ (bits >> 27)) * 0x94D049BB133111EB;
  return bits ^ (bits >> 31);
}

// Returns 64 random bits that depend on seed and counter only.
constexpr std::uint64_t random_bits(std::uint64_t seed, std::uint64_t counter) {
  return mix(mix(seed + 0x9E3779B97F4A7C15) + (counter + 1) * 0x9E3779B97F4A7C15);
}

}  // namespace cnn::data
