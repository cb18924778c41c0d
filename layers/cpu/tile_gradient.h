#pragma once

#include <cstdint>
#include <vector>

#include "layers/cpu/own_kernel.h"
#include "layers/cpu/simd/tile_gradient.h"
#include "layers/cpu/tile_positions.h"
#include "layers/window.h"

// The weight gradient of convolutions on bf16 images by matrix tiles (Intel AMX): batched small
// matrix products over the pixels, which lie end to end across rows and images.
namespace cnn::layers::cpu {

// x [N,I,H,W] and y [N,O,P,Q] in bf16 and nhwc, with a pitch or without, I and O multiples of 16.
struct TileGradientProblem {
  TensorDesc x, y;
  Window window;
  bool bias = false;

  std::int64_t in_blocks() const { return x.shape[1] / tile_channels; }
  std::int64_t out_blocks() const { return y.shape[1] / tile_channels; }
  std::int64_t taps() const { return window.kernel_h * window.kernel_w; }
};

// Computes dw[o][i][r][s] = sum of dy[o][p][q] x[i][p stride + r - pad][q stride + s - pad] and
// dbias[o] = sum of dy[o] over all pixels of the batch, in f32.
// in: x, dy. out: dw f32 [O/16][I/16][R][S][16 inputs][16 outputs], [dbias f32 [O]].
//
// The channels are cut into slabs whose sums stay in a second-level cache, and the positions of the
// batch into parts that are summed side by side and then added in order. The shape alone decides
// how many parts there are, so that results do not depend on the number of threads. A pixel outside
// of the image counts as zero, so that an infinite number at the border yields NaN.
class TileWeightsGradient {
 public:
  // The loops, which add parts and the bias, must outlive it.
  TileWeightsGradient(const TileGradientProblem& problem, const Loops& loops);

  std::size_t workspace() const;        // bytes
  std::size_t traffic_between() const;  // bytes of partial sums that are written and read
  void operator()(const Operands& o) const;

 private:
  struct Scratch {
    float* sums;         // [parts][O/16][I/16][R][S][16][16]; null with one part
    double* bias;        // [parts][O]
    float* columns;      // [parts][O]: sums of dy over a few pixels
    std::uint16_t* own;  // per thread: packed x, packed dy, the numbers of pixels
  };
  // The memory of a thread that holds a packed strip.
  struct Packed {
    std::uint16_t *x, *dy;
    std::int32_t* pixels;  // of a piece
  };
  // Some steps of the strip that begins with step `strip`.
  struct Piece {
    std::int64_t strip, first, steps;
  };
  struct Cut {
    std::int64_t slabs_in, slabs_out, parts;
  };
  // Blocks of channels of a slab.
  struct Slab {
    std::int64_t first_in, ins, first_out, outs;
  };

  std::int64_t slabs() const { return slabs_in_ * slabs_out_; }
  std::int64_t largest_in() const;  // blocks of the largest slab
  std::int64_t largest_out() const;
  void choose_cut();
  std::int64_t cost_of(const Cut& cut) const;
  std::int64_t steps() const;  // of the batch
  // Those of dy that the taps join with so many of x: earlier ones, too.
  std::int64_t steps_of_dy(std::int64_t steps) const;
  std::int64_t sums_of_part() const;  // floats, with what keeps parts off the same cache sets
  std::int64_t packed_x_words() const;
  std::int64_t packed_dy_words() const;
  std::int64_t own_words() const;
  Slab slab(std::int64_t number) const;
  Scratch carve(BumpAllocator& allocator) const;
  void run_item(const Operands& o, std::int64_t item, const Scratch& scratch,
                std::uint16_t* own) const;
  // Packs the operands of a strip of steps.
  void pack(const Operands& o, const Slab& slab, std::int64_t first, std::int64_t steps,
            std::uint16_t* own) const;
  void pack_x(const Operands& o, const Slab& slab, const Piece& piece, const Packed& to) const;
  void pack_dy(const Operands& o, const Slab& slab, const Piece& piece, const Packed& to) const;
  void add_bias(const Operands& o, std::int64_t part, const Scratch& scratch) const;

  TileGradientProblem problem_;
  const Loops* loops_;
  const TileGradientLoops* tiles_;
  TilePositions positions_;
  std::vector<TileTap> taps_;
  std::int64_t team_;
  std::int64_t slabs_in_ = 1, slabs_out_ = 1, parts_ = 1;
  // Copies of dy. Tiles take pairs of positions, so that a tap with an odd shift reads a second
  // copy, whose pairs begin one position earlier.
  std::int64_t copies_ = 1;
  std::int64_t steps_of_strip_ = 1;
};

}  // namespace cnn::layers::cpu
