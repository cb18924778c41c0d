#pragma once

#include <cstdint>

// The inner loop of max pools, by instruction set; loops.h states the common rules.
namespace cnn::layers::cpu {

// One row of outputs of a max pool, each of `columns` channels.
struct MaxPoolRow {
  const void* x = nullptr;          // the image [height][width][columns]
  void* y = nullptr;                // [outputs][columns]
  std::uint8_t* indices = nullptr;  // [outputs][columns]; null: not needed
  std::int64_t columns = 0, height = 0, width = 0, outputs = 0;
  std::int64_t top = 0;   // first row of the windows; may lie above the image
  std::int64_t left = 0;  // first column of the first window; may lie left of the image
  std::int64_t kernel_h = 1, kernel_w = 1, stride_w = 1;
};

// One function for each element type of x and y. A NaN is larger than all numbers; of equal maxima
// the first one wins.
struct MaxPoolLoops {
  void (*f32)(const MaxPoolRow& row);
  void (*bf16)(const MaxPoolRow& row);
};

const MaxPoolLoops& avx2_max_pool();
const MaxPoolLoops& avx512_max_pool();
const MaxPoolLoops& avx512_bf16_max_pool();

}  // namespace cnn::layers::cpu
