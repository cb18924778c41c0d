#pragma once

#include <cstdint>

#include "layers/cpu/own_kernel.h"
#include "layers/window.h"

// The weight gradient of convolutions on bf16 images, as batched small matrix products over the
// pixels (E. Georganas et al., "Harnessing deep learning via a single building block", 2020).
namespace cnn::layers::cpu {

// x [N,I,H,W] and y [N,O,P,Q] in bf16 and nchw16c, I and O multiples of 16.
struct Bf16GradientProblem {
  TensorDesc x, y;
  Window window;
  bool bias = false;

  std::int64_t in_blocks() const { return x.shape[1] / gradient_block; }
  std::int64_t out_blocks() const { return y.shape[1] / gradient_block; }
  std::int64_t taps() const { return window.kernel_h * window.kernel_w; }
};

// Computes dw[o][i][r][s] = sum of dy[o][p][q] x[i][p stride + r - pad][q stride + s - pad] and
// dbias[o] = sum of dy[o] over all pixels of the batch, in f32.
// in: x, dy. out: dw f32 [O/16][I/16][R][S][16 inputs][16 outputs], [dbias f32 [O]].
//
// The channels are cut into slabs whose sums stay in a second-level cache, and the rows of the
// batch into parts that are summed side by side and then added in order. The shape alone decides
// how many parts there are, so that results do not depend on the number of threads. A pixel outside
// of the image counts as zero, so that an infinite gradient at the border yields NaN.
class Bf16WeightsGradient {
 public:
  // The loops, which must have functions for it, must outlive it.
  Bf16WeightsGradient(const Bf16GradientProblem& problem, const Loops& loops);

  std::size_t workspace() const;        // bytes
  std::size_t traffic_between() const;  // bytes of partial sums that are written and read
  void operator()(const Operands& o) const;

 private:
  // Rows of images as the products see them. Without a window all pixels of an image are
  // neighbours, and several rows may count as one.
  struct Rows {
    std::int64_t count, width;      // of y
    std::int64_t x_count, x_width;  // of x
    std::int64_t pairs() const { return (width + 1) / 2; }
  };
  struct Scratch {
    float* sums;         // [parts][O/16][I/16][R][S][16][16]; null with one part
    double* bias;        // [parts][O]
    std::uint16_t* own;  // per thread: packed rows
  };
  // Blocks of channels of a slab.
  struct Slab {
    std::int64_t first_in, ins, first_out, outs;
  };
  // Rows of some images: of one, unless all its rows belong to the segment.
  struct Segment {
    std::int64_t image, images, first, rows;
  };

  static Rows rows_of(const Bf16GradientProblem& problem);
  std::int64_t slabs() const { return slabs_in_ * slabs_out_; }
  std::int64_t segments() const;
  std::int64_t sums_of_part() const;  // floats, with what keeps parts off the same cache sets
  std::int64_t packed_x_rows(std::int64_t rows) const;
  std::int64_t packed_x_words() const;   // of the largest slab and segment
  std::int64_t packed_dy_words() const;  // likewise
  Slab slab(std::int64_t number) const;
  Segment segment(std::int64_t number) const;
  Scratch carve(BumpAllocator& allocator) const;
  void run_item(const Operands& o, std::int64_t item, const Scratch& scratch,
                std::uint16_t* own) const;
  void pack_x(const std::uint16_t* x, const Slab& slab, const Segment& segment,
              std::uint16_t* to) const;
  void pack_dy(const std::uint16_t* dy, const Slab& slab, const Segment& segment,
               std::uint16_t* to) const;
  void add_bias(const std::uint16_t* dy, const Slab& slab, const Segment& segment,
                double* bias) const;

  Bf16GradientProblem problem_;
  const Loops* loops_;
  Rows rows_;
  std::int64_t team_;
  std::int64_t slabs_in_ = 1, slabs_out_ = 1, parts_ = 1;
  std::int64_t segments_per_image_ = 1, images_per_segment_ = 1;
};

}  // namespace cnn::layers::cpu
