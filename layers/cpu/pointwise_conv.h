#pragma once

#include <cstdint>

#include "layers/cpu/own_kernel.h"
#include "layers/cpu/strided_pixels.h"

// 1 x 1 convolutions and their data gradient as products of small matrices: pixels x channels times
// the weights.
namespace cnn::layers::cpu {

// x [N,I,H,W] and y [N,O,P,Q] in f32 and nhwc, I and O multiples of 16. Pixel (p, q) of y reads
// pixel (p stride_h, q stride_w) of x. Weights are [O/16][I][16].
struct PointwiseConvProblem {
  TensorDesc x, y;
  std::int64_t stride_h = 1, stride_w = 1;
  bool backward = false;  // the data gradient

  // Returns the channels that a pixel of the result sums over, and those that it has.
  std::int64_t ins() const { return backward ? y.shape[1] : x.shape[1]; }
  std::int64_t outs() const { return backward ? x.shape[1] : y.shape[1]; }
  std::int64_t pixels() const { return y.shape[0] * y.shape[2] * y.shape[3]; }
  bool has_stride() const { return stride_h > 1 || stride_w > 1; }
  StridedPixels pixels_of_x() const { return {x.shape, y.shape, stride_h, stride_w}; }
};

// Computes y[o] = sum of w[o][i] x[i] for each pixel of y, or dx[i] = sum of w[o][i] dy[o] for each
// pixel of x that some pixel of y reads, and zero for the others. in: x or dy, w. out: y or dx.
// Results do not depend on the number of threads.
class PointwiseConvolution {
 public:
  // The loops must outlive it.
  PointwiseConvolution(const PointwiseConvProblem& problem, const Loops& loops);

  std::size_t workspace() const;  // bytes
  void operator()(const Operands& o) const;

 private:
  struct Scratch {
    float* weights;  // [I/16][O][16], if backward
    float* pixels;   // of each share: some pixels end to end, if the stride is not 1
  };

  std::int64_t row() const;  // floats from one pixel of Scratch::pixels to the next
  std::int64_t tiles() const;
  Scratch carve(BumpAllocator& allocator) const;
  void run_item(const Operands& o, std::int64_t item, const float* w, float* pixels) const;
  void transpose(const float* w, float* to) const;
  void clear_unread(float* dx) const;

  PointwiseConvProblem problem_;
  const Loops* loops_;
  std::int64_t team_, slabs_ = 1;
};

}  // namespace cnn::layers::cpu
