#pragma once

#include <cstdint>

// The loops of dense layers with f32 weights and bf16 rows by matrix tiles (Intel AMX). They round
// weights to bf16 as they read them, so that memory holds no rounded copy. loops.h states the rules
// of all loops.
//
// Weights lie in slabs of 64 outputs: [outputs / 64][inputs][64].
namespace cnn::layers::cpu {

inline constexpr std::int64_t dense_slab = 64, dense_depth = 32;  // outputs; inputs of a tile
inline constexpr std::int64_t dense_rows = 16, max_dense_tiles = 4;

// y [rows][..] = relu(x w + bias) for one slab.
struct TileDenseSlab {
  const std::uint16_t* x = nullptr;  // [inputs / 32][row_tiles][16 rows][32 inputs], 0 after rows
  std::int64_t steps = 0;            // inputs / 32
  std::int64_t rows = 0, row_tiles = 0;
  const float* w = nullptr;
  const float* bias = nullptr;  // of this slab; null: none
  bool relu = false;
  std::uint16_t* y = nullptr;  // the first output of row 0
  std::int64_t y_row = 0;      // words from one row to the next
};

// dx [rows][16 inputs] = dy w^T for `blocks` blocks of 16 inputs.
struct TileDenseData {
  const std::uint16_t* dy = nullptr;  // [outputs / 32][row_tiles][16 pairs of outputs][16 rows][2]
  std::int64_t slabs = 0;
  std::int64_t rows = 0, row_tiles = 0;
  const float* w = nullptr;  // the first of these inputs in the first slab
  std::int64_t w_slab = 0;   // floats from one slab to the next
  std::uint16_t* dx = nullptr;
  std::int64_t dx_row = 0;  // words from one row to the next
  std::int64_t blocks = 0;
};

// dw [16 inputs][64] = x^T dy for `blocks` blocks of 16 inputs of one slab.
struct TileDenseGradient {
  const std::uint16_t* x = nullptr;   // [blocks][steps][16 inputs][32 rows], 0 after rows
  const std::uint16_t* dy = nullptr;  // [4][steps][16 pairs of rows][16 outputs][2]
  std::int64_t steps = 0;             // rows / 32, rounded up
  float* dw = nullptr;                // aligned to 64 bytes
  std::int64_t blocks = 0;
  bool stream = false;  // store past the caches
};

struct TileDenseLoops {
  void (*forward)(const TileDenseSlab& slab);
  void (*backward)(const TileDenseData& data);
  void (*gradient)(const TileDenseGradient& gradient);
};

// Requires a processor with AMX_BF16, and that hardware_isa() has asked the system for tiles.
const TileDenseLoops& amx_bf16_tile_dense();

}  // namespace cnn::layers::cpu
