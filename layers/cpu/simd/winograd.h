#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>

// Convolutions with stride 1 by Winograd's minimal filtering algorithm, in tiles of outputs: F(4x4,
// 3x3) takes 36 products for each tile and pair of channels instead of 144. See A. Lavin, S.
// Gray, "Fast Algorithms for Convolutional Neural Networks", 2015 (arXiv:1509.09308), section 4:
//   y = A^T [(G w G^T) . (B^T x B)] A,  dw = G^T [(A dy A^T) . (B^T x B)] G.
// Height and width have separate matrices, see winograd_lines.h: a window of 1 x 7 is transformed
// along its width alone.
namespace cnn::layers::cpu {

// F(tile_h x tile_w, taps_h x taps_w): outputs of a tile, and taps of a window.
struct WinogradForm {
  std::int64_t tile_h = 0, tile_w = 0, taps_h = 0, taps_w = 0;

  constexpr std::int64_t points_h() const { return tile_h + taps_h - 1; }
  constexpr std::int64_t points_w() const { return tile_w + taps_w - 1; }
  constexpr std::int64_t points() const { return points_h() * points_w(); }
  constexpr std::int64_t outputs() const { return tile_h * tile_w; }
  constexpr std::int64_t taps() const { return taps_h * taps_w; }
  bool operator==(const WinogradForm&) const = default;
};

// The forms that have loops.
inline constexpr WinogradForm winograd_forms[] = {
    {2, 2, 3, 3}, {4, 4, 3, 3}, {2, 2, 5, 5}, {1, 2, 1, 7}, {2, 1, 7, 1},
    {1, 4, 1, 3}, {4, 1, 3, 1}, {4, 4, 5, 5}, {1, 4, 1, 7}, {4, 1, 7, 1}};
inline constexpr std::size_t winograd_form_count = std::size(winograd_forms);

// Images have a multiple of this many channels.
inline constexpr std::int64_t winograd_block = 16;

// The strides of an image, in elements: channels in blocks of 16.
struct WinogradImage {
  std::int64_t height = 0, width = 0, channels = 0;
  std::int64_t image = 0, block = 0, pixel = 0;  // strides between images, blocks, pixels
};

// The tiling of outputs, row by row, image after image: tile 0 begins at output (0, 0) of image 0,
// which reads the input from (-pad_top, -pad_left).
struct WinogradTiles {
  std::int64_t high = 0, wide = 0;  // per image
  std::int64_t pad_top = 0, pad_left = 0;
};

// Weights [O][I][taps]. rotated: the convolution uses them backwards, from O to I.
struct WinogradWeights {
  const float* w = nullptr;
  std::int64_t in = 0, out = 0;  // channels of w
  bool rotated = false;

  // The channels of the convolution.
  std::int64_t conv_ins() const { return rotated ? out : in; }
  std::int64_t conv_outs() const { return rotated ? in : out; }
};

// Ranges of tiles, by number, and of channels.
struct TileSpan {
  std::int64_t first = 0, count = 0;
};
struct ChannelSpan {
  std::int64_t first = 0, count = 0;
};

// y = relu?(x * w + bias? + residual?) for some tiles, by weights or by transformed weights u,
// which are [panels][points][input channels][panel width], see WinogradLoops.
struct WinogradConv {
  WinogradImage x_image, y_image;
  WinogradTiles tiles;
  const void* x = nullptr;
  const float* u = nullptr;  // or null
  WinogradWeights weights;
  const float* bias = nullptr;     // or null; [output channels]
  const void* residual = nullptr;  // or null; as y
  void* y = nullptr;
  std::int64_t first_out = 0, last_out = 0;  // output channels to compute, see min_outs
  bool relu = false;
};

// The contribution of some tiles to a weight gradient, for input channels [first_in, first_in +
// ins) and output channels [first_out, first_out + outs).
struct WinogradGradient {
  WinogradImage x_image, y_image;
  WinogradTiles tiles;
  const void *x = nullptr, *dy = nullptr;
  std::int64_t first_in = 0, ins = 0, first_out = 0, outs = 0;
  float* sums = nullptr;   // [points][ins/16][outs/16][16 ins][16 outs], accumulated
  double* bias = nullptr;  // or null; [outs], accumulated
};

// Taps of a whole gradient in slabs of channels: [parts][slabs][taps][ins/16][outs/16][16 ins][16
// outs] of the slab, with slabs ordered by output channels within input channels.
struct WinogradTaps {
  const float* taps = nullptr;
  std::int64_t parts = 0, in = 0, out = 0;  // channels of the weights
  std::int64_t slab_in = 0, slab_out = 0;   // channels of every slab but the last
};

struct WinogradTypedLoops {
  // Convolves by conv.u. scratch: conv_scratch floats.
  void (*convolve)(const WinogradConv& conv, const TileSpan& tiles, float* scratch);
  // Computes the transformed tiles v, tiles_size floats, for some input channels.
  void (*transform)(const WinogradConv& conv, const TileSpan& tiles, const ChannelSpan& ins,
                    float* v);
  // Convolves what transform() made of the same tiles, with the same bits as convolve(). Transforms
  // conv.weights, some at a time, which stay in a cache: for few tiles that is faster than writing
  // and reading all of u. scratch: multiply_scratch floats.
  void (*multiply)(const WinogradConv& conv, const TileSpan& tiles, const float* v, float* scratch);
  // scratch: gradient_scratch floats.
  void (*gradient)(const WinogradGradient& gradient, const TileSpan& tiles, float* scratch);
};

// The loops for one form; "points" and "taps" below belong to it.
struct WinogradLoops {
  WinogradForm form;
  std::int64_t panel = 0;  // contiguous output channels in u
  // The fewest output channels that run well: threads that share a panel take multiples of them.
  std::int64_t min_outs = 0;
  WinogradTypedLoops f32, bf16;
  std::int64_t (*conv_scratch)(std::int64_t in_channels, std::int64_t count);
  std::int64_t (*tiles_size)(std::int64_t in_channels, std::int64_t count);
  std::int64_t (*multiply_scratch)(std::int64_t count);
  std::int64_t (*gradient_scratch)(std::int64_t outs, std::int64_t count);
  // Computes the pieces [first, last) of u: those of 16 input channels after another, panel by
  // panel.
  void (*weights)(const WinogradWeights& weights, std::int64_t first, std::int64_t last, float* u);
  // Computes taps [taps][ins][outs] from sums [points][ins][outs], whose channels keep their order.
  void (*taps)(const float* sums, std::int64_t ins, std::int64_t outs, float* taps);
  // Computes dw [O][I][taps] as the sum of all parts, for 16 output channels from first_out.
  void (*join)(const WinogradTaps& taps, std::int64_t first_out, float* dw);
};

}  // namespace cnn::layers::cpu
