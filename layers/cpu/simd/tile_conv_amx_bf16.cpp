#include <algorithm>
#include <cstdint>
#include <immintrin.h>

#include "layers/cpu/simd/amx_tiles.h"
#include "layers/cpu/simd/tile_conv.h"

// The compiler flags of this file enable its instruction set. The intrinsics of tiles name
// registers by literals: 0 to 3 hold sums, 4 and 5 positions, 6 and 7 weights.
namespace cnn::layers::cpu {
namespace {

constexpr std::int64_t half = 16;          // the rows of a tile, and its columns of f32
constexpr std::int64_t words_of_row = 32;  // of bf16

// The sums of 32 positions: tiles of 16 positions and 16 channels, positions change first.
using Sums = float[4][half * half];

// Adds up all products of a step for 32 channels.
void multiply_step(const TileConv& conv, const std::uint16_t* w, std::int64_t step, Sums& sums) {
  const std::int64_t row_bytes = conv.row * 2, w_bytes = conv.block * 4;
  const std::int64_t w_step = half * conv.block * 2;
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
  const std::uint16_t* const first = conv.rows + step * tile_conv_positions * conv.row;
  for (std::int64_t tap = 0; tap < conv.tap_count; ++tap) {
    const std::uint16_t* rows = first + conv.taps[tap].rows;
    const std::uint16_t* weights = w + conv.taps[tap].w;
    for (std::int64_t k = 0; k < conv.depth; ++k) {
      _tile_loadd(6, weights, w_bytes);
      _tile_loadd(4, rows, row_bytes);
      _tile_dpbf16ps(0, 4, 6);
      _tile_loadd(5, rows + half * conv.row, row_bytes);
      _tile_dpbf16ps(1, 5, 6);
      _tile_loadd(7, weights + words_of_row, w_bytes);
      _tile_dpbf16ps(2, 4, 7);
      _tile_dpbf16ps(3, 5, 7);
      rows += words_of_row;
      weights += w_step;
    }
  }
  constexpr std::int64_t sum_bytes = half * 4;
  _tile_stored(0, sums[0], sum_bytes);
  _tile_stored(1, sums[1], sum_bytes);
  _tile_stored(2, sums[2], sum_bytes);
  _tile_stored(3, sums[3], sum_bytes);
}

// Rounds the sums to bf16.
void store_step(const TileConv& conv, const std::int32_t* pixels, std::int64_t out,
                const Sums& sums) {
  for (std::int64_t i = 0; i < tile_conv_positions; ++i) {
    if (pixels[i] >= 0) {
      const std::int64_t at = i % half * half;
      const __m512 low = _mm512_load_ps(sums[i / half] + at);
      const __m512 high = _mm512_load_ps(sums[2 + i / half] + at);
      _mm512_storeu_si512(conv.y + pixels[i] * conv.y_pixel + out,
                          (__m512i)_mm512_cvtne2ps_pbh(high, low));
    }
  }
}

void multiply(const TileConv& conv) {
  alignas(64) Sums sums;
  _tile_loadconfig(&full_tiles);
  for (std::int64_t out = conv.first_out; out < conv.end_out; out += tile_conv_channels) {
    const std::uint16_t* const w = conv.w + out / conv.block * conv.w_block + out % conv.block * 2;
    for (std::int64_t step = 0; step < conv.steps; ++step) {
      const std::int32_t* const pixels = conv.pixels + step * tile_conv_positions;
      if (std::any_of(pixels, pixels + tile_conv_positions,
                      [](std::int32_t pixel) { return pixel >= 0; })) {
        multiply_step(conv, w, step, sums);
        store_step(conv, pixels, out, sums);
      }
    }
  }
  _tile_release();
}

}  // namespace

const TileConvLoops& amx_bf16_tile_conv() {
  static constexpr TileConvLoops loops{.multiply = multiply};
  return loops;
}

}  // namespace cnn::layers::cpu
