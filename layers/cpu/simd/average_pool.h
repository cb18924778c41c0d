#pragma once

#include <cstdint>

// The inner loop of average pools and of their gradients, by instruction set; loops.h states the
// common rules.
namespace cnn::layers::cpu {

// Consecutive pixels along one axis of an image.
struct PixelRange {
  std::int64_t begin = 0, end = 0;
};

// One row of weighted sums of an image's pixels. Pixel j is scale[j] times the sum of
// row_factors[h] column_factors[w] from[h][w] over h in `rows` and w in columns[j].
struct AveragePoolRow {
  const void* from = nullptr;  // the image [height][width][channels]
  void* to = nullptr;          // [pixels][channels]
  float* sums = nullptr;       // [width][channels]: memory for the sums of columns
  std::int64_t channels = 0, width = 0, pixels = 0;
  PixelRange rows;
  const PixelRange* columns = nullptr;  // by pixel of `to`
  const float* scale = nullptr;         // likewise
  const float* row_factors = nullptr;   // by row of `from`
  const float* column_factors = nullptr;
};

// One function for each element type of both images; sums are f32.
struct AveragePoolLoops {
  void (*f32)(const AveragePoolRow& row);
  void (*bf16)(const AveragePoolRow& row);
};

const AveragePoolLoops& avx2_average_pool();
const AveragePoolLoops& avx512_average_pool();
const AveragePoolLoops& avx512_bf16_average_pool();

}  // namespace cnn::layers::cpu
