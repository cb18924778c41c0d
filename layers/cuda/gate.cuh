#pragma once

#include <cmath>
#include <cstdint>

#include "layers/cuda/vector.cuh"

// Device versions of the ReLU derivative's gate; layers/gate.h explains how NaNs propagate.
namespace cnn::layers::cuda {

// Returns whether the gradient of a ReLU with this output passes.
__device__ inline bool is_open(float y) { return !(y <= 0); }
// Returns whether that of a ReLU with an upper limit, which may be infinity, passes.
__device__ inline bool is_open(float y, float limit) {
  return is_open(y) && !(y >= limit && limit < INFINITY);
}

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

// Returns the ReLU mask of up to eight values: bit i is set if values[i], rounded to T as it is
// stored, lets the gradient pass.
template <class T, int count>
__device__ std::uint8_t open_bits(const float (&values)[count]) {
  unsigned bits = 0;
#pragma unroll
  for (int i = 0; i < count; ++i) {
    bits |= is_open(to_float(from_float<T>(values[i]))) ? 1U << i : 0;
  }
  return static_cast<std::uint8_t>(bits);
}

}  // namespace cnn::layers::cuda
