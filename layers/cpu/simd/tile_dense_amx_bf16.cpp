#include <algorithm>
#include <immintrin.h>

#include "layers/cpu/simd/amx_tiles.h"
#include "layers/cpu/simd/tile_dense.h"
#include "layers/cpu/simd/zipped_words.h"

// The compiler flags of this file enable its instruction set. The intrinsics of tiles name
// registers by literals: 0 to 3 hold sums, 4 and 5 the first factor, 6 and 7 the second.
namespace cnn::layers::cpu {
namespace {

using Word = std::uint16_t;

constexpr std::int64_t side = 16, line = 32, words = side * line;  // of a tile
constexpr std::int64_t line_bytes = 64, slab_bytes = dense_slab * 4;

// Weights that are rounded at a time: they stay in half of a first-level cache.
constexpr std::int64_t steps_of_chunk = 4;

// How far ahead of its use a weight is asked for: prefetchers of the processor stop at the end of a
// page.
constexpr std::int64_t ahead = 1024;  // floats

__m512i rounded(const float* low, const float* high) {
  return (__m512i)_mm512_cvtne2ps_pbh(_mm512_loadu_ps(high), _mm512_loadu_ps(low));
}

void prefetch_row(const float* row) {
  for (std::int64_t i = 0; i < dense_slab; i += side) {
    _mm_prefetch(row + i, _MM_HINT_T1);
  }
}

// Rounds 32 inputs of a slab to four tiles of [16 pairs of inputs][16 outputs][2].
void round_pairs(const float* w, Word* to) {
  const __m512i zip = _mm512_load_si512(zipped_words.order);
  for (std::int64_t pair = 0; pair < side; ++pair, w += 2 * dense_slab) {
    prefetch_row(w + ahead);
    prefetch_row(w + ahead + dense_slab);
#pragma GCC unroll 4
    for (std::int64_t tile = 0; tile < 4; ++tile) {
      const float* const row = w + tile * side;
      _mm512_store_si512(to + tile * words + pair * line,
                         _mm512_permutexvar_epi16(zip, rounded(row, row + dense_slab)));
    }
  }
}

void clear_sums() {
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
}

// Adds the products of one tile with four, which lie `next` words apart.
void multiply_four(const Word* one, const Word* four, std::int64_t next) {
  _tile_loadd(4, one, line_bytes);
  _tile_loadd(6, four, line_bytes);
  _tile_dpbf16ps(0, 4, 6);
  _tile_loadd(7, four + next, line_bytes);
  _tile_dpbf16ps(1, 4, 7);
  _tile_loadd(6, four + 2 * next, line_bytes);
  _tile_dpbf16ps(2, 4, 6);
  _tile_loadd(7, four + 3 * next, line_bytes);
  _tile_dpbf16ps(3, 4, 7);
}

// Stores the sums as 16 rows of a slab.
void store_slab(float* to) {
  _tile_stored(0, to, slab_bytes);
  _tile_stored(1, to + side, slab_bytes);
  _tile_stored(2, to + 2 * side, slab_bytes);
  _tile_stored(3, to + 3 * side, slab_bytes);
}

// Adds the products of some steps to the sums of a tile of rows.
void multiply_chunk(const Word* x, std::int64_t x_step, const Word* w, std::int64_t steps,
                    float* sums, bool add) {
  if (add) {
    _tile_loadd(0, sums, slab_bytes);
    _tile_loadd(1, sums + side, slab_bytes);
    _tile_loadd(2, sums + 2 * side, slab_bytes);
    _tile_loadd(3, sums + 3 * side, slab_bytes);
  } else {
    clear_sums();
  }
  for (std::int64_t step = 0; step < steps; ++step) {
    multiply_four(x, w, words);
    x += x_step;
    w += 4 * words;
  }
  store_slab(sums);
}

// Returns 16 sums with bias and ReLU, which keeps NaN.
__m512 finished(const TileDenseSlab& slab, const float* sums, std::int64_t out) {
  __m512 y = _mm512_load_ps(sums + out);
  if (slab.bias != nullptr) {
    y = _mm512_add_ps(y, _mm512_loadu_ps(slab.bias + out));
  }
  return slab.relu ? _mm512_max_ps(_mm512_setzero_ps(), y) : y;
}

void forward(const TileDenseSlab& slab) {
  alignas(64) Word w[steps_of_chunk * 4 * words];
  alignas(64) float sums[max_dense_tiles * dense_rows * dense_slab];
  _tile_loadconfig(&full_tiles);
  for (std::int64_t first = 0; first < slab.steps; first += steps_of_chunk) {
    const std::int64_t steps = std::min(steps_of_chunk, slab.steps - first);
    for (std::int64_t step = 0; step < steps; ++step) {
      round_pairs(slab.w + (first + step) * line * dense_slab, w + step * 4 * words);
    }
    for (std::int64_t tile = 0; tile < slab.row_tiles; ++tile) {
      multiply_chunk(slab.x + (first * slab.row_tiles + tile) * words, slab.row_tiles * words, w,
                     steps, sums + tile * dense_rows * dense_slab, first > 0);
    }
  }
  _tile_release();
  for (std::int64_t row = 0; row < slab.rows; ++row) {
    const float* const from = sums + row * dense_slab;
    for (std::int64_t out = 0; out < dense_slab; out += line) {
      _mm512_storeu_si512(slab.y + row * slab.y_row + out,
                          (__m512i)_mm512_cvtne2ps_pbh(finished(slab, from, out + side),
                                                       finished(slab, from, out)));
    }
  }
}

// Rounds 16 inputs of a slab to two tiles of [16 inputs][32 outputs].
void round_rows(const float* w, const float* next, Word* to) {
#pragma GCC unroll 4
  for (std::int64_t i = 0; i < side; ++i) {
    prefetch_row(next + i * dense_slab);
    const float* const row = w + i * dense_slab;
    _mm512_store_si512(to + i * line, rounded(row, row + side));
    _mm512_store_si512(to + words + i * line, rounded(row + 2 * side, row + 3 * side));
  }
}

// Writes 16 inputs of the rows of a tile from sums [16 inputs][16 rows].
void store_inputs(const float* sums, std::int64_t rows, Word* dx, std::int64_t dx_row) {
  const __m512i every_row =
      _mm512_mullo_epi32(_mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15),
                         _mm512_set1_epi32(static_cast<int>(side)));
  for (std::int64_t row = 0; row < rows; ++row) {
    const __m512 inputs = _mm512_i32gather_ps(every_row, sums + row, 4);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(dx + row * dx_row),
                        (__m256i)_mm512_cvtneps_pbh(inputs));
  }
}

// Adds the products of 64 outputs for up to four tiles of rows. The tiles of dy of one step lie
// together, those of the next step after them.
void multiply_rows(const Word* w, const Word* dy, std::int64_t row_tiles) {
  for (std::int64_t step = 0; step < 2; ++step, w += words, dy += row_tiles * words) {
    _tile_loadd(4, w, line_bytes);
    _tile_loadd(6, dy, line_bytes);
    _tile_dpbf16ps(0, 4, 6);
    if (row_tiles > 1) {
      _tile_loadd(7, dy + words, line_bytes);
      _tile_dpbf16ps(1, 4, 7);
    }
    if (row_tiles > 2) {
      _tile_loadd(6, dy + 2 * words, line_bytes);
      _tile_dpbf16ps(2, 4, 6);
    }
    if (row_tiles > 3) {
      _tile_loadd(7, dy + 3 * words, line_bytes);
      _tile_dpbf16ps(3, 4, 7);
    }
  }
}

void backward(const TileDenseData& data) {
  alignas(64) Word w[2 * words];
  alignas(64) float sums[max_dense_tiles][side * side];
  _tile_loadconfig(&full_tiles);
  for (std::int64_t block = 0; block < data.blocks; ++block) {
    const float* const first = data.w + block * side * dense_slab;
    clear_sums();
    for (std::int64_t slab = 0; slab < data.slabs; ++slab) {
      const float* const from = first + slab * data.w_slab;
      round_rows(from, slab + 1 < data.slabs ? from + data.w_slab : first + side * dense_slab, w);
      multiply_rows(w, data.dy + slab * 2 * data.row_tiles * words, data.row_tiles);
    }
    _tile_stored(0, sums[0], line_bytes);
    _tile_stored(1, sums[1], line_bytes);
    _tile_stored(2, sums[2], line_bytes);
    _tile_stored(3, sums[3], line_bytes);
    for (std::int64_t tile = 0; tile < data.row_tiles; ++tile) {
      store_inputs(sums[tile], std::min(side, data.rows - tile * side),
                   data.dx + tile * side * data.dx_row + block * side, data.dx_row);
    }
  }
  _tile_release();
}

void gradient(const TileDenseGradient& all) {
  alignas(64) float sums[side * dense_slab];
  _tile_loadconfig(&full_tiles);
  const std::int64_t next_out = all.steps * words;
  for (std::int64_t block = 0; block < all.blocks; ++block) {
    clear_sums();
    for (std::int64_t step = 0; step < all.steps; ++step) {
      multiply_four(all.x + (block * all.steps + step) * words, all.dy + step * words, next_out);
    }
    float* const dw = all.dw + block * side * dense_slab;
    float* const to = all.stream ? sums : dw;
    store_slab(to);
    for (std::int64_t i = 0; all.stream && i < side * dense_slab; i += side) {
      _mm512_stream_ps(dw + i, _mm512_load_ps(sums + i));
    }
  }
  _tile_release();
  _mm_sfence();
}

}  // namespace

const TileDenseLoops& amx_bf16_tile_dense() {
  static constexpr TileDenseLoops loops{
      .forward = forward, .backward = backward, .gradient = gradient};
  return loops;
}

}  // namespace cnn::layers::cpu
