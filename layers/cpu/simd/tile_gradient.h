#pragma once

#include <cstdint>

// The loops of convolutions' weight gradients by matrix tiles, which add the products of pairs of
// bf16 to sums in f32 (Intel AMX). loops.h states the rules of all loops.
//
// The pixels of a batch lie end to end at numbered positions, of which 32 make a step: one tile of
// each operand. Channels are taken by blocks of 16.
namespace cnn::layers::cpu {

inline constexpr std::int64_t tile_channels = 16;
inline constexpr std::int64_t tile_pixels = 32;
inline constexpr std::int64_t tile_words = tile_channels * tile_pixels;
inline constexpr std::int64_t tile_row = 32;  // words
inline constexpr std::int64_t tile_sums = tile_channels * tile_channels;

// Packs some blocks of channels of an nhwc image for all positions.
struct TilePack {
  const std::uint16_t* image = nullptr;  // the first of these channels of pixel 0
  const std::int32_t* pixels = nullptr;  // [steps][32] number of the pixel; -1: zeros
  std::int64_t channels = 0;             // of the image: from one pixel to the next
  std::int64_t steps = 0, blocks = 0;
  std::uint16_t* to = nullptr;  // aligned to 64 bytes
  std::int64_t to_block = 0;    // from one block to the next, in words
};

// Where the operands of a tap, one element of the window, begin, in words. A row of a tile takes
// one cache line, and all begin with a line: loads across two of them take twice as long.
struct TileTap {
  std::int64_t x = 0, dy = 0;
};

// The contribution of some positions to a weight gradient.
struct TileGradient {
  const std::uint16_t* x = nullptr;   // rows: blocks of [steps][16 channels][32 pixels]
  const std::uint16_t* dy = nullptr;  // pairs: blocks of [pairs][16 channels][2 pixels]
  std::int64_t x_block = 0, dy_block = 0;
  std::int64_t in_blocks = 0, out_blocks = 0, steps = 0;
  const TileTap* taps = nullptr;
  std::int64_t tap_count = 0;
  // Sums [out_blocks][in_blocks][taps][16 inputs][16 outputs].
  float* sums = nullptr;
  std::int64_t sums_of_out_block = 0;  // from one block of outputs to the next, in floats
  bool add = false;                    // to the sums, else they are replaced
};

struct TileGradientLoops {
  void (*pack_rows)(const TilePack& pack);
  void (*pack_pairs)(const TilePack& pack);
  void (*multiply)(const TileGradient& gradient);
};

// Requires a processor with AMX_BF16, and that hardware_isa() has asked the system for tiles.
const TileGradientLoops& amx_bf16_tile_gradient();

}  // namespace cnn::layers::cpu
