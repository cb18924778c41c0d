#pragma once

#include <cstdint>

// The loop of the weight gradient of 1 x 1 convolutions; see loops.h for the rules of all loops.
namespace cnn::layers::cpu {

// Channels come in whole blocks of 16 (nchw16c); the pixels of a block are contiguous.
inline constexpr std::int64_t pointwise_block = 16;
inline constexpr std::int64_t pointwise_tile = pointwise_block * pointwise_block;

// The contribution of some pixels of one image to a weight gradient: for each pair of an input and
// an output channel, the sum over the pixels of x times dy.
struct PointwiseGradient {
  const float *x = nullptr, *dy = nullptr;  // the first pixel of the first block
  const float* x_next = nullptr;            // of x for the next call, to be prefetched; or null
  std::int64_t x_block = 0, dy_block = 0;   // elements from one block to the next
  std::int64_t in_blocks = 0, out_blocks = 0, pixels = 0;
  float* sums = nullptr;  // [out_blocks][in_blocks][16 inputs][16 outputs]
  bool add = false;       // to the sums, else they are replaced
};

}  // namespace cnn::layers::cpu
