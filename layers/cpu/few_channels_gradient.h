#pragma once

#include <cstdint>
#include <span>

#include "layers/cpu/own_kernel.h"
#include "layers/window.h"

// The weight gradient of a network's first convolution, whose input is an image of three channels.
// Vectors hold output channels, and the taps of one line of a window, which are contiguous in x,
// are the rows of a product of small matrices.
namespace cnn::layers::cpu {

// x [N,C,H,W] in nhwc or nchw and y [N,O,P,Q] in nhwc or nchw16c, both f32, O a multiple of 16.
// dw lies as [O/block][R][S][C][block], in the order of oneDNN's forward weights.
struct FewChannelsProblem {
  TensorDesc x, y;
  Window window;
  bool bias = false;
  std::int64_t block = few_channels_block;  // 8 or 16

  std::int64_t line() const { return window.kernel_w * x.shape[1]; }  // floats of a window's line
  std::int64_t taps() const { return window.kernel_h * line(); }
};

// Returns whether the kernel can run the problem.
bool is_supported(const FewChannelsProblem& problem);

// Computes dw and dbias as Conv2dBackwardWeights does. in: x, dy. out: dw f32, [dbias f32 [O]]. The
// rows of y are cut into parts that are summed up side by side and then added in order. The shape
// alone decides how many parts there are, so that results do not depend on the number of threads.
class FewChannelsWeightsGradient {
 public:
  // The loops must outlive it.
  FewChannelsWeightsGradient(const FewChannelsProblem& problem, const Loops& loops);

  std::size_t workspace() const;        // bytes
  std::size_t traffic_between() const;  // bytes of partial sums that are written and read
  void operator()(const Operands& o) const;

 private:
  struct Scratch {
    float* parts;  // [parts][O/16][R][S C][16]
    float* total;  // their sum
    double* bias;  // [parts][O]
    float* lines;  // of each share: the latest lines of x, with padding, one for each of a window
  };
  class Lines;

  std::int64_t sums() const { return problem_.y.shape[1] * problem_.taps(); }
  std::int64_t line_floats() const;  // of a line of x with padding
  Scratch carve(BumpAllocator& allocator) const;
  void run_part(const Operands& o, std::int64_t part, const Scratch& scratch, float* lines) const;
  // Adds a row of y, whose first pixel gradient.dy is, to gradient.sums and the bias, if any.
  void add_row(FewChannelsGradient gradient, std::span<const float* const> lines,
               double* bias) const;
  void add_bias(const FewChannelsGradient& gradient, double* bias) const;
  void write_weights(const float* total, float* dw) const;

  FewChannelsProblem problem_;
  const Loops* loops_;
  std::int64_t team_, parts_ = 1;
};

}  // namespace cnn::layers::cpu
