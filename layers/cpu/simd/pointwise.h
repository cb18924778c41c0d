#pragma once

#include <cstdint>

// The loops of 1 x 1 convolutions; see loops.h for the rules of all loops.
namespace cnn::layers::cpu {

// Channels come in whole blocks of 16.
inline constexpr std::int64_t pointwise_block = 16;
inline constexpr std::int64_t pointwise_tile = pointwise_block * pointwise_block;

// The contribution of some pixels to a weight gradient: for each pair of an input and an output
// channel, the sum over the pixels of x times dy. The pixels of a block of channels are contiguous.
struct PointwiseGradient {
  const float *x = nullptr, *dy = nullptr;  // the first pixel of the first block
  const float* x_next = nullptr;            // of x for the next call, to be prefetched; or null
  std::int64_t x_block = 0, dy_block = 0;   // elements from one block to the next
  std::int64_t in_blocks = 0, out_blocks = 0, pixels = 0;
  float* sums = nullptr;  // [out_blocks][in_blocks][16 inputs][16 outputs]
  bool add = false;       // to the sums, else they are replaced
};

// The most pixels of a product, and so the most runs.
inline constexpr std::int64_t max_product_pixels = 192;

// Pixels of a product that are equally far apart in x and in y. Has no initial values, as arrays of
// them are made on the hot path.
struct PointwiseRun {
  const float* x;         // the first channel of the first pixel
  float* y;               // likewise, of the output channels of the product
  const float* residual;  // or null; lies as y does
  std::int64_t pixels;
};

// y = relu?(x w + bias? + residual?) for some pixels, whose channels lie in blocks of 16.
struct PointwiseProduct {
  const PointwiseRun* runs = nullptr;
  std::int64_t run_count = 0;
  const float* w = nullptr;     // [outs/16][ins][16]
  const float* bias = nullptr;  // or null; [outs]
  std::int64_t ins = 0, outs = 0;
  // Elements from one pixel to the next, and from one block of channels.
  std::int64_t x_pixel = 0, x_block = 0, y_pixel = 0, y_block = 0;
  bool relu = false;  // NaN stays
};

// Widens pixels of an image, equally far apart, for a product. Distances are in elements.
struct GatherPixels {
  const void* from = nullptr;  // the first pixel's first block of channels; f32, or bf16 as words
  float* to = nullptr;
  std::int64_t pixels = 0, blocks = 0;
  std::int64_t from_pixel = 0, from_block = 0, to_pixel = 0, to_block = 0;
};

// Writes products to pixels of an image: to = relu?(from + bias? + residual?).
struct ScatterPixels {
  const float* from = nullptr;  // the channels of a pixel are contiguous
  void* to = nullptr;           // f32, or bf16 as words
  std::int64_t pixels = 0, blocks = 0;
  std::int64_t from_pixel = 0, to_pixel = 0, to_block = 0;
  const float* bias = nullptr;     // or null; of each channel
  const void* residual = nullptr;  // or null; lies as `to` does
  bool relu = false;               // NaN stays
};

}  // namespace cnn::layers::cpu
