#pragma once

#include <cstdint>

#include "runtime/cuda/launch.h"

// Counter-based random numbers (splitmix64) on the device, with the bits of the host's.
namespace cnn::layers::cuda {

// Returns 64 random bits for counter i of a stream, as layers::random_bits() does on the host.
__device__ inline std::uint64_t random_bits_of(std::uint64_t stream, std::uint64_t i) {
  std::uint64_t z = stream + (i + 1) * 0x9E3779B97F4A7C15ULL;
  z = (z ^ (z >> 30U)) * 0xBF58476D1CE4E5B9ULL;
  z = (z ^ (z >> 27U)) * 0x94D049BB133111EBULL;
  return z ^ (z >> 31U);
}

// Returns the key of the random stream of one step, whose number the kernel reads from device
// memory, so that a captured step draws new numbers in every replay.
__device__ inline std::uint64_t stream_of_step(std::uint64_t seed, const std::int32_t* step) {
  return random_bits_of(seed, static_cast<std::uint32_t>(*step));
}

}  // namespace cnn::layers::cuda
