#pragma once

#include <cstdint>

#include "runtime/cuda/launch.h"

// Block-wide reductions: combine one value of each thread of a block through shared memory.
namespace cnn::layers::cuda {

inline constexpr int block_threads = 256;  // the block size that every reduction assumes

// The dynamic shared memory that a reduction of Numbers needs, in bytes.
template <class Number>
inline constexpr std::size_t reduce_bytes = block_threads * sizeof(Number);

// Reduces the values of all threads of a one-dimensional block with combine(a, b) in a binary tree,
// so that the order and the bits are the same in every run, and returns the result to every thread.
// Every thread of the block must call it. It uses the first reduce_bytes of shared memory.
template <class Number, class Combine>
__device__ Number reduce_block(Number value, const Combine& combine) {
  const cnn::cuda::Shared<Number> shared(0, block_threads);
  const int thread = static_cast<int>(threadIdx.x);
  __syncthreads();  // every thread has read the result of the previous reduction
  shared[thread] = value;
  __syncthreads();
  for (int half = block_threads / 2; half > 0; half /= 2) {
    if (thread < half) {
      value = combine(value, static_cast<Number>(shared[thread + half]));
      shared[thread] = value;
    }
    __syncthreads();
  }
  return shared[0];
}

// Returns the sum over the block to every thread; see reduce_block().
template <class Number>
__device__ Number sum_block(Number value) {
  return reduce_block(value, [](Number a, Number b) { return a + b; });
}

// Returns the sum of n values in device memory to every thread of the one block that computes it.
template <class Number>
__device__ Number sum_array(const Number* values, std::int64_t n) {
  Number sum = 0;
#pragma unroll 4
  for (std::int64_t i = threadIdx.x; i < n; i += block_threads) {
    sum += values[i];
  }
  return sum_block(sum);
}

}  // namespace cnn::layers::cuda
