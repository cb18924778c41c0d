#pragma once

#include <cstdint>

#include "layers/cpu/simd/pointwise.h"
#include "layers/cpu/simd/small_gemm.h"

// The loop of the weight gradient of 1 x 1 convolutions, as a template of the vector type V.
namespace cnn::layers::cpu {

template <class V>
class PointwiseGradientLoop {
 public:
  // Takes two vectors of output channels at a time, of two blocks or of one. They stay in the
  // first-level cache while all blocks of input channels pass.
  static void run(const PointwiseGradient& of) {
    for (std::int64_t out = 0; out < of.out_blocks; out += together) {
      for (std::int64_t in = 0; in < of.in_blocks; ++in) {
        multiply(of, in, out);
      }
    }
  }

 private:
  static constexpr bool two_blocks = V::width == pointwise_block;
  static constexpr std::int64_t together = two_blocks ? 2 : 1;

  static void multiply(const PointwiseGradient& of, std::int64_t in, std::int64_t out) {
    const std::int64_t left = of.out_blocks - out;
    const std::int64_t blocks = left < together ? left : together;
    GemmTask task{.a = of.x + in * of.x_block,
                  .b = of.dy + out * of.dy_block,
                  .c = of.sums + (out * of.in_blocks + in) * pointwise_tile,
                  .rows = pointwise_block,
                  .depth = of.pixels,
                  .columns = blocks * pointwise_block,
                  .a_row = 1,
                  .a_step = pointwise_block,
                  .b_step = pointwise_block,
                  .b_vector = two_blocks ? of.dy_block : V::width,
                  .c_row = pointwise_block,
                  .c_vector = two_blocks ? of.in_blocks * pointwise_tile : V::width,
                  .add = of.add};
    if (in == 0 && left > together) {  // the next panel of dy, one block for each group of rows
      task.prefetch = of.dy + (out + together) * of.dy_block;
      task.prefetch_row = left > together + 1 ? of.dy_block : 0;
    } else if (left <= together && of.x_next != nullptr) {
      task.prefetch = of.x_next + in * of.x_block;
    }
    SmallGemm<V>::multiply_block(task);
  }
};

}  // namespace cnn::layers::cpu
