#pragma once

#include <cstdint>

#include "layers/cpu/own_kernel.h"
#include "layers/cpu/strided_pixels.h"

// The weight gradient of 1 x 1 convolutions, as batched small matrix products over the pixels
// (E. Georganas et al., "Harnessing deep learning via a single building block", 2020).
namespace cnn::layers::cpu {

// x [N,I,H,W] and y [N,O,P,Q] in f32 or bf16 and in nhwc or nchw16c, both alike, I and O multiples
// of 16. Pixel (p, q) of y reads pixel (p stride_h, q stride_w) of x.
struct PointwiseProblem {
  TensorDesc x, y;
  bool bias = false;
  std::int64_t stride_h = 1, stride_w = 1;

  // Returns whether blocks of channels are copied together before they are multiplied.
  bool packs() const {
    return x.layout == Layout::nhwc || x.type != DataType::f32 || stride_h > 1 || stride_w > 1;
  }
  // Ranges of consecutive pixels: images, or the whole batch where blocks are copied anyway.
  std::int64_t ranges() const { return packs() ? 1 : y.shape[0]; }
  std::int64_t pixels() const {  // of a range
    return y.shape[0] * y.shape[2] * y.shape[3] / ranges();
  }
  StridedPixels pixels_of_x() const { return {x.shape, y.shape, stride_h, stride_w}; }
  std::int64_t in_blocks() const { return x.shape[1] / pointwise_block; }
  std::int64_t out_blocks() const { return y.shape[1] / pointwise_block; }
};

// Computes dw[o][i] = sum of dy[o] x[i] and dbias[o] = sum of dy[o] over all pixels of the batch.
// in: x, dy. out: dw f32 [O/16][I/16][16 inputs][16 outputs], [dbias f32 [O]].
//
// The channels are cut into slabs whose sums stay in a second-level cache, and the pixels of the
// batch into parts that are summed side by side and then added in order. The shape alone decides
// how many parts there are, so that results do not depend on the number of threads.
class PointwiseWeightsGradient {
 public:
  // The loops must outlive it.
  PointwiseWeightsGradient(const PointwiseProblem& problem, const Loops& loops);

  std::size_t workspace() const;        // bytes
  std::size_t traffic_between() const;  // bytes of partial sums that are written and read
  void operator()(const Operands& o) const;

 private:
  struct Scratch {
    float* sums;    // [parts][slabs][out_blocks][in_blocks][16][16] of the slab
    double* bias;   // [parts][O]
    float* packed;  // of each share: a segment of x, then of dy, in blocks of channels
  };
  // Blocks of channels of a slab.
  struct Slab {
    std::int64_t first_in, ins, first_out, outs;
  };
  // Pixels of one range.
  struct Segment {
    std::int64_t range, first, count;
  };

  std::int64_t slabs_in() const;
  std::int64_t slabs_out() const;
  std::int64_t sums_of_part() const;  // floats, with what keeps parts off the same cache sets
  Slab slab(std::int64_t number) const;
  Segment segment(std::int64_t number) const;
  // The first pixel of a segment of an image's `blocks` blocks in block number `block`.
  std::int64_t place_of(const Segment& pixels, std::int64_t blocks, std::int64_t block) const;
  std::int64_t place_in_part(const Slab& slab) const;  // of its sums, in floats
  Scratch carve(BumpAllocator& allocator) const;
  std::int64_t packed_x() const;     // floats of a packed segment of x
  std::int64_t packed_each() const;  // of a share
  void run_item(const Operands& o, std::int64_t item, const Scratch& scratch, float* packed) const;
  void place(const Operands& o, const Segment& pixels, const Slab& channels,
             PointwiseGradient& gradient) const;
  void pack(const Operands& o, const Segment& pixels, const Slab& channels, float* packed,
            PointwiseGradient& gradient) const;
  void add_bias(const PointwiseGradient& gradient, double* bias) const;
  void reduce_parts(const Scratch& scratch, std::int64_t out_block, float* dw) const;

  PointwiseProblem problem_;
  const Loops* loops_;
  std::int64_t team_, segments_per_range_ = 1, parts_ = 1;
};

}  // namespace cnn::layers::cpu
