#pragma once

#include <cstdint>

#include "layers/cpu/simd/few_channels.h"
#include "layers/cpu/simd/small_gemm.h"

// The loop of few_channels.h, as a template of the vector type V.
namespace cnn::layers::cpu {

template <class V>
class FewChannelsGradientLoop {
 public:
  // Takes two vectors of output channels at a time, whose pixels stay in the first-level cache
  // while all lines of the windows pass.
  static void run(const FewChannelsGradient& gradient) {
    for (std::int64_t out = 0; out < gradient.outs; out += together) {
      for (std::int64_t r = 0; r < gradient.kernel_h; ++r) {
        if (gradient.lines[r] != nullptr) {
          multiply(gradient, r, out);
        }
      }
    }
  }

 private:
  static constexpr bool two_blocks = V::width == few_channels_block;
  static constexpr std::int64_t together = 2 * V::width;

  static void multiply(const FewChannelsGradient& gradient, std::int64_t r, std::int64_t out) {
    const std::int64_t left = gradient.outs - out, line = gradient.line * few_channels_block;
    const std::int64_t block = gradient.kernel_h * line;
    SmallGemm<V>::multiply_block({.a = gradient.lines[r],
                                  .b = gradient.dy + out / few_channels_block * gradient.dy_block,
                                  .c = gradient.sums + out / few_channels_block * block + r * line,
                                  .rows = gradient.line,
                                  .depth = gradient.pixels,
                                  .columns = left < together ? left : together,
                                  .a_row = 1,
                                  .a_step = gradient.step,
                                  .b_step = gradient.dy_pixel,
                                  .b_vector = two_blocks ? gradient.dy_block : V::width,
                                  .c_row = few_channels_block,
                                  .c_vector = two_blocks ? block : V::width,
                                  .add = true});
  }
};

}  // namespace cnn::layers::cpu
