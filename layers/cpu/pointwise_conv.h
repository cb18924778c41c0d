#pragma once

#include <cstdint>

#include "layers/cpu/own_kernel.h"
#include "layers/cpu/strided_pixels.h"

// 1 x 1 convolutions and their data gradient as products of small matrices: pixels x channels times
// the weights.
namespace cnn::layers::cpu {

// x [N,I,H,W] and y [N,O,P,Q] in f32 or bf16 and in nhwc or nchw16c, both alike, I and O multiples
// of 16. Pixel (p, q) of y reads pixel (p stride_h, q stride_w) of x. Weights are [O/16][I][16] in
// f32.
struct PointwiseConvProblem {
  TensorDesc x, y;
  std::int64_t stride_h = 1, stride_w = 1;
  bool backward = false;                              // the data gradient
  bool bias = false, residual = false, relu = false;  // of the convolution only

  // Returns the channels that a pixel of the result sums over, and those that it has.
  std::int64_t ins() const { return backward ? y.shape[1] : x.shape[1]; }
  std::int64_t outs() const { return backward ? x.shape[1] : y.shape[1]; }
  std::int64_t pixels() const { return y.shape[0] * y.shape[2] * y.shape[3]; }
  bool has_stride() const { return stride_h > 1 || stride_w > 1; }
  StridedPixels pixels_of_x() const { return {x.shape, y.shape, stride_h, stride_w}; }

  // Return whether pixels are copied before products read them, and after products wrote them.
  bool gathers() const { return x.type != DataType::f32 || (has_stride() && !backward); }
  bool scatters() const { return x.type != DataType::f32 || (has_stride() && backward); }
};

// Computes y[o] = relu?(sum of w[o][i] x[i] + bias?[o] + residual?[o]) for each pixel of y, or
// dx[i] = sum of w[o][i] dy[o] for each pixel of x that some pixel of y reads, and zero for the
// others. in: x or dy, w, [bias f32 [O]], [residual as y]. out: y or dx. Sums are in f32. Results
// do not depend on the number of threads.
class PointwiseConvolution {
 public:
  // The loops must outlive it.
  PointwiseConvolution(const PointwiseConvProblem& problem, const Loops& loops);

  std::size_t workspace() const;  // bytes
  void operator()(const Operands& o) const;

 private:
  // The pixels of an item, end to end.
  struct Buffers {
    float *gathered, *sums;
  };
  struct Scratch {
    float* weights;   // [I/16][O][16], if backward
    Buffers buffers;  // of the first share; those of the others follow
  };
  // Some pixels of y, and some channels of the result.
  struct Item {
    std::int64_t first, count, first_out, outs;
  };
  // Some pixels of an item, equally far apart in memory.
  struct Place {
    std::int64_t before, count;  // pixels of the item before them, and their number
    std::int64_t bytes;          // from the beginning of all images to the first of them
    std::int64_t pixel, block;   // elements from one pixel, and block of channels, to the next
  };

  std::int64_t most_pixels() const;  // of an item
  std::int64_t tiles() const;
  Item item(std::int64_t number) const;
  Scratch carve(BumpAllocator& allocator) const;
  void run_item(const Operands& o, const Item& item, const float* w, const Buffers& buffers) const;
  template <class Visit>
  void each_dense_run(const Item& item, const Visit& visit) const;
  template <class Visit>
  void each_place(bool of_x, const Item& item, std::int64_t block, const Visit& visit) const;
  void gather(const Operands& o, const Item& item, float* to) const;
  void scatter(const Operands& o, const Item& item, const float* sums) const;
  void transpose(const float* w, float* to) const;
  void clear_unread(std::byte* dx) const;

  PointwiseConvProblem problem_;
  const Loops* loops_;
  std::int64_t team_, slabs_ = 1;
};

}  // namespace cnn::layers::cpu
