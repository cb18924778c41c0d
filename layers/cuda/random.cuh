#pragma once

#include <cstdint>

#include "runtime/cuda/launch.h"

namespace cnn::layers::cuda {

// Returns the same bits as layers::random_bits, which only the host can call.
__device__ inline std::uint64_t random_bits_of(std::uint64_t stream, std::uint64_t i) {
  std::uint64_t z = stream + (i + 1) * 0x9E3779B97F4A7C15ULL;
  z = (z ^ (z >> 30U)) * 0xBF58476D1CE4E5B9ULL;
  z = (z ^ (z >> 27U)) * 0x94D049BB133111EBULL;
  return z ^ (z >> 31U);
}

// Returns the random stream of the step whose number is in device memory.
__device__ inline std::uint64_t stream_of_step(std::uint64_t seed, const std::int32_t* step) {
  return random_bits_of(seed, static_cast<std::uint32_t>(*step));
}

}  // namespace cnn::layers::cuda
