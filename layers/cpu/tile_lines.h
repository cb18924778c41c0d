#pragma once

#include <cstdint>
#include <vector>

#include "layers/cpu/own_kernel.h"
#include "layers/cpu/simd/tile_gradient.h"
#include "layers/cpu/simd/tile_lines.h"
#include "layers/window.h"
#include "runtime/divide_up.h"

// The weight gradient of a network's first convolution, whose input is an image of few channels, on
// bf16 images by matrix tiles (Intel AMX).
namespace cnn::layers::cpu {

// x [N,C,H,W] and y [N,O,P,Q] in bf16 and dense nhwc.
struct TileLinesProblem {
  TensorDesc x, y;
  Window window;
  bool bias = false;

  std::int64_t channels() const { return x.shape[1]; }
  std::int64_t step() const { return window.stride_w * channels(); }
  std::int64_t lines() const { return window.kernel_w * channels(); }  // of a row
  std::int64_t out_blocks() const { return y.shape[1] / tile_channels; }
  std::int64_t line_blocks() const { return divide_up(window.kernel_h * lines(), tile_channels); }
  // Returns whether the kernel takes it: fewer than 16 channels, whole pairs of output blocks, and
  // steps that its tables hold.
  bool is_supported() const;
};

// Computes dw and dbias as Conv2dBackwardWeights does.
// in: x, dy. out: dw f32 [O/16][R][S][16 channels, zero from C on][16 outputs], [dbias f32 [O]].
// The rows of dy are cut into bands, and these into parts that are summed side by side and then
// added in order. The shape alone decides how many parts there are, so that results do not depend
// on the number of threads.
class TileLinesWeightsGradient {
 public:
  // The loops, which sum the bias, must outlive it.
  TileLinesWeightsGradient(const TileLinesProblem& problem, const Loops& loops);

  std::size_t workspace() const;        // bytes
  std::size_t traffic_between() const;  // bytes of partial sums that are written and read
  void operator()(const Operands& o) const;

 private:
  struct Scratch {
    float* sums;         // [parts][O/16][blocks of lines][16][16]
    float* columns;      // [parts][O]: sums of dy over a row
    double* bias;        // [parts][O]
    std::uint16_t* own;  // per thread: the lines of a band, its dy, a row of x, its phases
  };
  struct Band {
    std::int64_t image, first, rows;  // of dy
  };

  std::int64_t outs() const { return problem_.y.shape[1]; }
  std::int64_t pitch() const;
  std::int64_t sums_of_part() const;  // floats
  std::int64_t rows_of_x(std::int64_t rows) const;
  std::int64_t lines_words() const;
  std::int64_t dy_words() const;
  std::int64_t row_words() const;
  std::int64_t phase_pitch() const;
  std::int64_t own_words() const;
  Scratch carve(BumpAllocator& allocator) const;
  Band band(std::int64_t number) const;
  void run_part(const Operands& o, std::int64_t part, const Scratch& scratch,
                std::uint16_t* own) const;
  void unroll(const std::uint16_t* image, const Band& band, std::uint16_t* own) const;
  void pack(const std::uint16_t* dy, const Band& band, std::uint16_t* to) const;
  void add_bias(const std::uint16_t* dy, const Band& band, std::int64_t part,
                const Scratch& scratch) const;
  void write_weights(const float* sums, float* dw) const;

  TileLinesProblem problem_;
  const Loops* loops_;
  std::int64_t team_, bands_of_image_, parts_;
  std::vector<std::int32_t> pixels_;  // of a band, from its first one on; -1: zeros
};

}  // namespace cnn::layers::cpu
