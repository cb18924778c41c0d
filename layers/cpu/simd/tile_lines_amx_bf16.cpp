#include <algorithm>
#include <immintrin.h>

#include "layers/cpu/simd/amx_tiles.h"
#include "layers/cpu/simd/tile_lines.h"

// The compiler flags of this file enable its instruction set. The intrinsics of tiles name
// registers by literals: 0 to 3 hold sums, 4 and 5 lines, 6 and 7 gradients of outputs.
namespace cnn::layers::cpu {
namespace {

using Word = std::uint16_t;

constexpr std::int64_t side = 16, tile_bytes = 64, tile_floats = side * side;
constexpr std::int64_t words_of_tile = side * line_step;

// Returns 32 words of a row: `phase`, `phase` + step, and so on. Each of the `step` vectors of the
// row holds some of them.
__m512i words_of_phase(const Word* row, std::int64_t step, std::int64_t phase) {
  const __m512i numbers =
      _mm512_set_epi16(31, 30, 29, 28, 27, 26, 25, 24, 23, 22, 21, 20, 19, 18, 17, 16, 15, 14, 13,
                       12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
  const __m512i place =
      _mm512_add_epi16(_mm512_mullo_epi16(numbers, _mm512_set1_epi16(static_cast<short>(step))),
                       _mm512_set1_epi16(static_cast<short>(phase)));
  __m512i result = _mm512_setzero_si512();
  for (std::int64_t i = 0; i < step; ++i) {
    const __m512i within =
        _mm512_sub_epi16(place, _mm512_set1_epi16(static_cast<short>(i * line_step)));
    const __mmask32 here = _mm512_cmplt_epu16_mask(within, _mm512_set1_epi16(line_step));
    result = _mm512_mask_permutexvar_epi16(result, here, within,
                                           _mm512_loadu_si512(row + i * line_step));
  }
  return result;
}

// Splits the row by its words' remainders by the step: a line is a shifted copy of one of these.
void unroll(const TileLines& all) {
  const std::int64_t phases = std::min(all.step, all.lines);
  const std::int64_t words = all.outputs + all.lines / all.step;
  for (std::int64_t phase = 0; phase < phases; ++phase) {
    Word* const to = all.phases + phase * all.phase_pitch;
    for (std::int64_t q = 0; q < words; q += line_step) {
      _mm512_storeu_si512(to + q, words_of_phase(all.row + q * all.step, all.step, phase));
    }
  }
  for (std::int64_t line = 0; line < all.lines; ++line) {
    const Word* const from = all.phases + line % all.step * all.phase_pitch + line / all.step;
    Word* const to = all.to + line * all.pitch;
    for (std::int64_t q = 0; q < all.pitch; q += line_step) {
      const std::int64_t left = std::clamp<std::int64_t>(all.outputs - q, 0, line_step);
      const auto mask = static_cast<__mmask32>((std::uint64_t{1} << left) - 1);
      _mm512_store_si512(to + q, _mm512_maskz_loadu_epi16(mask, from + q));
    }
  }
}

template <int lines>
void load_sums(const TileLinesGradient& all, const float* sums) {
  if (!all.add) {
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
    return;
  }
  const std::int64_t next_out = all.line_blocks * tile_floats;
  _tile_loadd(0, sums, tile_bytes);
  _tile_loadd(2, sums + next_out, tile_bytes);
  if constexpr (lines == 2) {
    _tile_loadd(1, sums + tile_floats, tile_bytes);
    _tile_loadd(3, sums + next_out + tile_floats, tile_bytes);
  }
}

// All rows, for one or two blocks of lines and two of outputs.
template <int lines>
void multiply_blocks(const TileLinesGradient& all, std::int64_t line, std::int64_t out) {
  float* const sums = all.sums + (out * all.line_blocks + line) * tile_floats;
  load_sums<lines>(all, sums);
  const std::int64_t line_bytes = all.pitch * 2, block = side * all.pitch;
  const std::int64_t steps = all.pitch / line_step;
  const std::int64_t next_out = all.rows * steps * words_of_tile;
  const Word* dy = all.dy + out * next_out;
  for (std::int64_t row = 0; row < all.rows; ++row) {
    const Word* x = all.lines + row * all.next_row + line * block;
    for (std::int64_t step = 0; step < steps; ++step) {
      _tile_loadd(4, x, line_bytes);
      _tile_loadd(6, dy, tile_bytes);
      _tile_dpbf16ps(0, 4, 6);
      _tile_loadd(7, dy + next_out, tile_bytes);
      _tile_dpbf16ps(2, 4, 7);
      if constexpr (lines == 2) {
        _tile_loadd(5, x + block, line_bytes);
        _tile_dpbf16ps(1, 5, 6);
        _tile_dpbf16ps(3, 5, 7);
      }
      x += line_step;
      dy += words_of_tile;
    }
  }
  const std::int64_t next_sums = all.line_blocks * tile_floats;
  _tile_stored(0, sums, tile_bytes);
  _tile_stored(2, sums + next_sums, tile_bytes);
  if constexpr (lines == 2) {
    _tile_stored(1, sums + tile_floats, tile_bytes);
    _tile_stored(3, sums + next_sums + tile_floats, tile_bytes);
  }
}

void multiply(const TileLinesGradient& all) {
  _tile_loadconfig(&full_tiles);
  for (std::int64_t line = 0; line < all.line_blocks; line += 2) {
    for (std::int64_t out = 0; out < all.out_blocks; out += 2) {
      if (all.line_blocks - line > 1) {
        multiply_blocks<2>(all, line, out);
      } else {
        multiply_blocks<1>(all, line, out);
      }
    }
  }
  _tile_release();
}

}  // namespace

const TileLinesLoops& amx_bf16_tile_lines() {
  static constexpr TileLinesLoops loops{.unroll = unroll, .multiply = multiply};
  return loops;
}

}  // namespace cnn::layers::cpu
