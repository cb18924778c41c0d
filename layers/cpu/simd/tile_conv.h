#pragma once

#include <cstdint>

// The loop of convolutions and their data gradients by matrix tiles, which add the products of
// pairs of bf16 to sums in f32 (Intel AMX). loops.h states the rules of all loops.
//
// Pixels lie end to end at numbered positions, so that each tap of the window reads the row of its
// position and a constant. 32 positions and 32 written channels make four tiles of sums.
namespace cnn::layers::cpu {

inline constexpr std::int64_t tile_conv_positions = 32, tile_conv_channels = 32;

// Where the operands of a tap, one element of the window, begin, in words.
struct TileConvTap {
  std::int64_t rows = 0, w = 0;
};

// All results of some positions: y[position][o] = the sum over taps t and channels k of
// rows[position + t][k] w[t][k][o].
struct TileConv {
  const std::uint16_t* rows = nullptr;  // [positions][channels], each row at a cache line
  std::int64_t row = 0;                 // words from one position to the next
  std::int64_t depth = 0;               // channels that are read, in steps of 32
  // [outs / block][taps][depth][16 pairs of channels][block][2]: weights of bf16, as oneDNN orders
  // them for tiles.
  const std::uint16_t* w = nullptr;
  std::int64_t block = 0;    // a multiple of 32
  std::int64_t w_block = 0;  // words from one block to the next
  const TileConvTap* taps = nullptr;
  std::int64_t tap_count = 0;
  std::int64_t first_out = 0, end_out = 0;  // the channels that are written, multiples of 32
  std::uint16_t* y = nullptr;               // channel 0 of pixel 0
  std::int64_t y_pixel = 0;                 // words from one pixel to the next
  const std::int32_t* pixels = nullptr;     // [steps][32] number of the pixel; -1: not stored
  std::int64_t steps = 0;
};

struct TileConvLoops {
  void (*multiply)(const TileConv& conv);
};

// Requires a processor with AMX_BF16, and that hardware_isa() has asked the system for tiles.
const TileConvLoops& amx_bf16_tile_conv();

}  // namespace cnn::layers::cpu
