#pragma once

#include <cstdint>

// The loops of convolutions' weight gradients from bf16 images, by instructions that add the
// products of two pairs of words to a sum in f32. loops.h states the rules of all loops.
//
// The pairs are neighbouring pixels of a row: packed, a row of a block of 16 channels is
// [pairs][16 channels][2 pixels], and the second pixel of a last odd one is zero.
namespace cnn::layers::cpu {

inline constexpr std::int64_t gradient_block = 16;  // channels: nchw16c
inline constexpr std::int64_t gradient_tile = gradient_block * gradient_block;
inline constexpr std::int64_t words_of_pair = gradient_block * 2;

// Packs rows of one block of an image, `pixels` pixels of each. Pixels outside of the image become
// zero.
struct Bf16PackRows {
  const std::uint16_t* image = nullptr;  // [height][width][16]
  std::uint16_t* to = nullptr;           // [rows][pairs()][16][2], aligned to 64 bytes
  std::int64_t height = 0, width = 0;
  std::int64_t first_row = 0, first_column = 0;  // may lie above and left of the image
  std::int64_t row_stride = 1, column_stride = 1;
  std::int64_t rows = 0, pixels = 0;

  std::int64_t pairs() const { return (pixels + 1) / 2; }
};

// The contribution of some rows of images to a weight gradient. A tap is one element of the window.
struct Bf16Gradient {
  // Packed rows: x [in_blocks][kernel_w][images][x_rows], dy [out_blocks][images][rows]. Each
  // column of the window has its own copy of x, so that all pairs meet those of dy.
  const std::uint16_t *x = nullptr, *dy = nullptr;
  std::int64_t in_blocks = 0, out_blocks = 0, kernel_h = 1, kernel_w = 1;
  std::int64_t images = 0, rows = 0, pairs = 0;  // of dy
  std::int64_t x_rows = 0;                       // of an image
  std::int64_t x_step = 1;                       // rows of x for a row of dy
  // Sums [out_blocks][in_blocks][kernel_h][kernel_w][16 inputs][16 outputs].
  float* sums = nullptr;
  std::int64_t sums_of_out_block = 0;  // from one block of outputs to the next, in floats
  bool add = false;                    // to the sums, else they are replaced
};

// Null in sets that lack the instruction.
struct Bf16GradientFunctions {
  void (*pack)(const Bf16PackRows& rows) = nullptr;
  void (*multiply)(const Bf16Gradient& gradient) = nullptr;
};

}  // namespace cnn::layers::cpu
