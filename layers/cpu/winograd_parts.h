#pragma once

#include <cstdint>

#include "layers/cpu/own_kernel.h"
#include "runtime/divide_up.h"

// Convolutions by Winograd's algorithm (see simd/winograd.h) on all threads: the work and the
// workspace of a kernel of each direction.
namespace cnn::layers::cpu {

// One convolution with stride 1, in either direction: x [N,I,H,W] -> y [N,O,P,Q].
struct WinogradProblem {
  TensorDesc x, y;
  std::int64_t pad_top = 0, pad_left = 0;
  WinogradForm form;

  WinogradTiles cover() const;
  std::int64_t tiles() const;  // of all images
  // Returns the operations of the products and of the transforms of x and y.
  double flops() const;
};

WinogradImage image_of(const TensorDesc& desc);  // nhwc or nchw16c, whole blocks of channels

// Returns the tiles that a convolution transforms at a time: enough to reuse weights, in whole
// groups of rows of the products.
std::int64_t tiles_together(const WinogradProblem& problem);

// With at most so many tiles, all of them are transformed first, and weights some at a time, which
// stay in a cache; with more it is the other way round, as the weights u would be transformed again
// for each block of tiles. In the 3 x 3 convolution of 512 to 512 channels of 7 x 7 images with
// AVX-512, 64 tiles take 6.5 ms instead of 9.8, 128 take 13.4 instead of 14.4, 192 as long.
inline constexpr std::int64_t max_tiles_without_u = 128;

// Calls body(first, count) for blocks of about equal size, at most `most` tiles each, that cover
// [first, last).
template <class Body>
void in_blocks(std::int64_t first, std::int64_t last, std::int64_t most, const Body& body) {
  const std::int64_t blocks = divide_up(last - first, most);
  for (std::int64_t i = 0; i < blocks; ++i) {
    const std::int64_t begin = first + (last - first) * i / blocks;
    body(begin, first + (last - first) * (i + 1) / blocks - begin);
  }
}

// y = relu?(x * w + bias? + residual?), or x = y * w with the weights rotated. in: x, w [O,I,R,S],
// [bias], [residual]. out: y. The loops must outlive the object.
class WinogradConvolution {
 public:
  struct Form {
    bool rotated = false;  // w is [I,O,R,S] and used backwards
    bool bias = false, residual = false, relu = false;
  };

  WinogradConvolution(const WinogradProblem& problem, const Form& form, const WinogradLoops& loops);

  const WinogradProblem& problem() const { return problem_; }
  std::size_t workspace() const;
  void operator()(const Operands& o) const;

 private:
  struct Scratch {
    float *u, *v;  // transformed weights or tiles, which threads share; the other is null
    float* own;    // of each share
    std::int64_t own_each;
  };
  // Shares of the work, one per thread: parts of the tiles times parts of the output channels.
  struct Shares {
    std::int64_t across = 1, deep = 1;
    bool has_u = true;       // all weights are transformed first, else all tiles
    std::int64_t tiles = 0;  // transformed at a time
  };

  Shares shares() const;
  Scratch carve(BumpAllocator& allocator) const;
  void convolve_share(WinogradConv conv, std::int64_t share, const Scratch& scratch) const;
  const WinogradTypedLoops& typed_loops() const;

  WinogradProblem problem_;
  Form form_;
  const WinogradLoops* loops_;
  std::int64_t team_;
};

// dw = x * dy, dbias = sum of dy. in: x, dy. out: dw [O,I,R,S], [dbias]. Channels are cut into
// slabs whose sums stay in a cache, and tiles into parts. Both counts depend on the shape only, so
// results do not depend on the number of threads. The loops must outlive the object.
class WinogradWeightsGradient {
 public:
  WinogradWeightsGradient(const WinogradProblem& problem, bool bias, const WinogradLoops& loops);

  const WinogradProblem& problem() const { return problem_; }
  std::size_t workspace() const;
  void operator()(const Operands& o) const;

 private:
  struct Scratch {
    float* taps;   // see WinogradTaps
    double* bias;  // [parts][O]
    float* own;    // per thread: sums, then transformed tiles
    std::int64_t own_each;
  };

  std::int64_t slabs() const { return slabs_in_ * slabs_out_; }
  std::int64_t sums() const { return problem_.form.points() * slab_in_ * slab_out_; }
  Scratch carve(BumpAllocator& allocator) const;
  void run_item(const Operands& o, std::int64_t item, const Scratch& scratch, float* own) const;

  WinogradProblem problem_;
  bool bias_;
  const WinogradLoops* loops_;
  std::int64_t team_;
  std::int64_t slab_in_ = 0, slab_out_ = 0, slabs_in_ = 0, slabs_out_ = 0, parts_ = 1;
};

}  // namespace cnn::layers::cpu
