#pragma once

#include <cmath>
#include <cstdint>

#include "layers/cuda/vector.cuh"

// Device versions of the ReLU derivative's gate; layers/gate.h explains how NaNs propagate.
namespace cnn::layers::cuda {

// Returns whether the gradient of a ReLU with this output passes.
__device__ inline bool is_open(float y) { return !(y <= 0); }
// Returns whether that of a ReLU with an upper limit passes; NAN: there is no limit.
__device__ inline bool is_open(float y, float limit) { return is_open(y) && !(y >= limit); }
// Returns the limit of a ReLU, which may be infinity, as is_open() takes it. Kernels would need a
// register more for a test for infinity.
inline float limit_of_gate(float limit) { return limit < INFINITY ? limit : NAN; }

// min(relu(x), limit), or without the ReLU.
struct Activation {
  bool relu = false;
  float limit = INFINITY;
  __device__ float operator()(float x) const {
    const float positive = relu && x < 0 ? 0 : x;  // unlike fmaxf and fminf, keeps a NaN
    return positive > limit ? limit : positive;
  }
};

// Returns the value if the gate is open, else the value times zero, but never -0.
__device__ inline float gated(float value, bool open) { return open ? value : fmaf(value, 0, 0); }

// The channels of one byte of a ReLU mask, see layers/relu_mask.h.
inline constexpr int mask_width = 8;

// Stores a thread's part of the byte of a ReLU mask: bit i of the part is set if values[i], rounded
// to T as it is stored, lets the gradient pass. Threads with four values share the byte with the
// neighbour along x, and both of an even and an odd thread must call it.
template <class T, int width>
__device__ void store_open_bits(std::uint8_t* byte, const float (&values)[width]) {
  static_assert(width == mask_width || 2 * width == mask_width);
  unsigned bits = 0;
#pragma unroll
  for (int i = 0; i < width; ++i) {
    bits |= is_open(to_float(from_float<T>(values[i]))) ? 1U << i : 0;
  }
  if constexpr (width < mask_width) {
    const unsigned even_lane = (threadIdx.y * blockDim.x + threadIdx.x) % 32U & ~1U;
    bits |= __shfl_xor_sync(3U << even_lane, bits, 1) << width;
    if (threadIdx.x % 2 != 0) {
      return;
    }
  }
  *byte = static_cast<std::uint8_t>(bits);
}

// Returns the bits of the channels from `channel` on, at the end of the byte that has them.
__device__ inline unsigned open_bits(std::uint8_t byte, int channel) {
  return static_cast<unsigned>(byte) >> (channel % mask_width);
}

}  // namespace cnn::layers::cuda
