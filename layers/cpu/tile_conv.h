#pragma once

#include <cstdint>
#include <vector>

#include "layers/cpu/own_kernel.h"
#include "layers/cpu/simd/tile_conv.h"
#include "layers/cpu/tile_positions.h"
#include "layers/window.h"

// Convolutions and data gradients of bf16 images by matrix tiles (Intel AMX): batched small matrix
// products over the pixels, which lie end to end across rows and images.
namespace cnn::layers::cpu {

// x [N,I,H,W] and y [N,O,P,Q] in bf16 and nhwc, with a pitch or without, I and O multiples of 32.
struct TileConvProblem {
  TensorDesc x, y;
  Window window;
  bool backward = false;
  // How many of the channels that are written lie together in the weights: a multiple of 32 that
  // divides their number.
  std::int64_t block = tile_conv_channels;

  const TensorDesc& from() const { return backward ? y : x; }
  const TensorDesc& to() const { return backward ? x : y; }
  std::int64_t ins() const { return from().shape[1]; }
  std::int64_t outs() const { return to().shape[1]; }
  std::int64_t taps() const { return window.kernel_h * window.kernel_w; }
};

// Computes y[o][p][q] = the sum of w[o][i][r][s] x[i][p stride + r - pad][q stride + s - pad], or
// with `backward` dx[i][..] = the sum of w[o][i][r][s] dy[o][p][q] over the same pixels.
// in: x or dy, w bf16 [written / block][R][S][read / 32][16 pairs][block][2 channels that are
// read]. out: y or dx.
//
// A few images at a time are copied into a second-level cache with zeros around them. A gradient is
// computed for each phase of x, the pixels of equal remainders by the stride, from the taps that
// reach it: a stride makes no products with zeros. The sum of a pixel takes taps and channels in
// their order, so that results do not depend on the number of threads. A pixel outside of the image
// counts as zero, so that an infinite weight yields NaN at the border.
class TileConvolution {
 public:
  explicit TileConvolution(const TileConvProblem& problem);

  // Returns whether the copy of an image has a size that some cache may hold.
  bool is_useful() const;
  std::size_t workspace() const;  // bytes
  void operator()(const Operands& o) const;

 private:
  struct Phase {  // of the image that is written
    std::int64_t number;
    std::vector<TileConvTap> taps;
  };
  // The memory of a thread.
  struct Own {
    std::uint16_t* rows;   // [phases that are read][rows()][row()]
    std::int32_t* pixels;  // of rows or results
  };

  std::int64_t images() const { return problem_.x.shape[0]; }
  std::int64_t row() const;   // words
  std::int64_t rows() const;  // of a phase that is read
  std::int64_t steps() const;
  std::int64_t read_phases() const { return problem_.backward ? 1 : positions_.phases(); }
  std::int64_t own_rows() const { return read_phases() * rows() * row(); }
  void choose_groups();
  void list_phases();
  void list_unwritten();
  Own carve(BumpAllocator& allocator) const;  // of all threads, one after another
  // The numbers of the pixels from position `first` on, of a group of `count` images.
  void list(bool is_dy, std::int64_t phase, std::int64_t first, std::int64_t count,
            std::int64_t images, std::int32_t* to) const;
  void run_item(const Operands& o, std::int64_t item, const Own& own) const;
  void pack(const std::uint16_t* from, std::int64_t images, const Own& own) const;

  TileConvProblem problem_;
  std::int64_t team_;
  std::int64_t of_group_ = 1;  // images of the largest group
  std::int64_t groups_ = 1, slabs_ = 1;
  TilePositions positions_;  // of a group
  std::vector<Phase> phases_;
  std::vector<std::int32_t> unwritten_;  // pixels of an image that no tap reaches
};

}  // namespace cnn::layers::cpu
