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
  static void run(const PointwiseGradient& gradient) {
    for (std::int64_t out = 0; out < gradient.out_blocks; out += together) {
      for (std::int64_t in = 0; in < gradient.in_blocks; ++in) {
        multiply(gradient, in, out);
      }
    }
  }

 private:
  static constexpr bool two_blocks = V::width == pointwise_block;
  static constexpr std::int64_t together = two_blocks ? 2 : 1;

  static void multiply(const PointwiseGradient& gradient, std::int64_t in, std::int64_t out) {
    const std::int64_t left = gradient.out_blocks - out;
    const std::int64_t blocks = left < together ? left : together;
    GemmTask task{.a = gradient.x + in * gradient.x_block,
                  .b = gradient.dy + out * gradient.dy_block,
                  .c = gradient.sums + (out * gradient.in_blocks + in) * pointwise_tile,
                  .rows = pointwise_block,
                  .depth = gradient.pixels,
                  .columns = blocks * pointwise_block,
                  .a_row = 1,
                  .a_step = pointwise_block,
                  .b_step = pointwise_block,
                  .b_vector = two_blocks ? gradient.dy_block : V::width,
                  .c_row = pointwise_block,
                  .c_vector = two_blocks ? gradient.in_blocks * pointwise_tile : V::width,
                  .add = gradient.add};
    if (in == 0 && left > together) {  // the next panel of dy, one block for each group of rows
      task.prefetch = gradient.dy + (out + together) * gradient.dy_block;
      task.prefetch_row = left > together + 1 ? gradient.dy_block : 0;
    } else if (left <= together && gradient.x_next != nullptr) {
      task.prefetch = gradient.x_next + in * gradient.x_block;
    }
    SmallGemm<V>::multiply_block(task);
  }
};

}  // namespace cnn::layers::cpu
