#pragma once

#include <cstdint>

// The loops of a first convolution's weight gradient by matrix tiles (Intel AMX). loops.h states
// the rules of all loops.
//
// An image of few channels is unrolled into lines: line j = s C + c of a row holds channel c of the
// pixel that column s of the window meets, for one output after another. The lines of neighbouring
// rows follow each other, so that those of a whole window are rows of tiles.
namespace cnn::layers::cpu {

inline constexpr std::int64_t line_step = 32;  // outputs of a tile

// Unrolls one row of an image.
struct TileLines {
  // The row with zeros around it; line j has its word q at q * step + j. At least step * 32 words
  // more than the lines need can be read.
  const std::uint16_t* row = nullptr;
  std::int64_t step = 1;            // channels times the stride, at most 16
  std::int64_t lines = 0;           // of a row
  std::int64_t outputs = 0;         // words of a line, then zeros up to `pitch`
  std::int64_t pitch = 0;           // a multiple of 32
  std::uint16_t* phases = nullptr;  // scratch: [step][phase_pitch]
  std::int64_t phase_pitch = 0;     // a multiple of 32, at least pitch + lines / step + 32
  std::uint16_t* to = nullptr;      // [lines][pitch], aligned to 64 bytes
};

// The contribution of some rows of outputs to the gradient.
struct TileLinesGradient {
  const std::uint16_t* lines = nullptr;  // of the first row of x that the first row of dy meets
  std::int64_t pitch = 0;                // words of a line
  std::int64_t next_row = 0;             // words of x from one row of dy to the next
  const std::uint16_t* dy = nullptr;     // [out_blocks][rows][pitch / 32][16 pairs][16 outputs][2]
  std::int64_t rows = 0;
  std::int64_t line_blocks = 0, out_blocks = 0;  // of 16
  float* sums = nullptr;                         // [out_blocks][line_blocks][16][16]
  bool add = false;                              // to the sums, else they are replaced
};

struct TileLinesLoops {
  void (*unroll)(const TileLines& lines);
  void (*multiply)(const TileLinesGradient& gradient);
};

// Requires a processor with AMX_BF16, and that hardware_isa() has asked the system for tiles.
const TileLinesLoops& amx_bf16_tile_lines();

}  // namespace cnn::layers::cpu
