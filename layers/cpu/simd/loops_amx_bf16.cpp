#include <cstdint>
#include <immintrin.h>

#include "layers/cpu/simd/amx_tiles.h"
#include "layers/cpu/simd/tile_gradient.h"
#include "layers/cpu/simd/zipped_words.h"

// The compiler flags of this file enable its instruction set. The intrinsics of tiles name
// registers by literals: 0 to 3 hold sums, 4 and 5 inputs, 6 and 7 gradients of outputs.
namespace cnn::layers::cpu {
namespace {

using Word = std::uint16_t;

// The steps whose rows of two blocks of inputs take half of a first-level cache.
constexpr std::int64_t max_steps_of_chunk = 12;
constexpr std::int64_t row_bytes = 64;

alignas(64) constexpr Word zero_pixel[tile_channels] = {};

// The first channels of the 32 pixels of a step, then of their next block of channels.
struct Pixels {
  Pixels(const TilePack& pack, std::int64_t step) {
    for (std::int64_t i = 0; i < tile_pixels; ++i) {
      const std::int64_t pixel = pack.pixels[step * tile_pixels + i];
      from[i] = pixel < 0 ? zero_pixel : pack.image + pixel * pack.channels;
      next[i] = pixel < 0 ? 0 : tile_channels;
    }
  }
  void go_on() {
    for (std::int64_t i = 0; i < tile_pixels; ++i) {
      from[i] += next[i];
    }
  }
  const Word* from[tile_pixels];
  std::int64_t next[tile_pixels];
};

__m128i load_eight(const Word* from) {
  return _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
}

// Loads eight channels of pixels i, i + 8, i + 16 and i + 24.
__m512i load_lanes(const Word* const* from, std::int64_t channel) {
  __m512i all = _mm512_castsi128_si512(load_eight(from[0] + channel));
  all = _mm512_inserti32x4(all, load_eight(from[8] + channel), 1);
  all = _mm512_inserti32x4(all, load_eight(from[16] + channel), 2);
  return _mm512_inserti32x4(all, load_eight(from[24] + channel), 3);
}

// Transposes eight channels of 32 pixels within the lanes of vectors.
void transpose_eight(const Word* const* from, std::int64_t channel, Word* to) {
  __m512i v[8], w[8];
#pragma GCC unroll 8
  for (std::int64_t i = 0; i < 8; ++i) {
    v[i] = load_lanes(from + i, channel);
  }
#pragma GCC unroll 4
  for (std::int64_t i = 0; i < 4; ++i) {  // pixels 2 i and 2 i + 1: channels 0 to 3, then 4 to 7
    w[i] = _mm512_unpacklo_epi16(v[2 * i], v[2 * i + 1]);
    w[4 + i] = _mm512_unpackhi_epi16(v[2 * i], v[2 * i + 1]);
  }
#pragma GCC unroll 4
  for (std::int64_t i = 0; i < 4;
       ++i) {  // of w[2 i] and w[2 i + 1]: two channels of four pixels each
    v[2 * i] = _mm512_unpacklo_epi32(w[2 * i], w[2 * i + 1]);
    v[2 * i + 1] = _mm512_unpackhi_epi32(w[2 * i], w[2 * i + 1]);
  }
#pragma GCC unroll 4
  for (std::int64_t i = 0; i < 4; ++i) {
    const std::int64_t low = i / 2 * 4 + i % 2;
    _mm512_store_si512(to + 2 * i * tile_row, _mm512_unpacklo_epi64(v[low], v[low + 2]));
    _mm512_store_si512(to + (2 * i + 1) * tile_row, _mm512_unpackhi_epi64(v[low], v[low + 2]));
  }
}

void pack_rows(const TilePack& pack) {
  for (std::int64_t step = 0; step < pack.steps; ++step) {
    Pixels pixels(pack, step);
    Word* to = pack.to + step * tile_words;
    for (std::int64_t block = 0; block < pack.blocks; ++block) {
      transpose_eight(pixels.from, 0, to);
      transpose_eight(pixels.from, 8, to + 8 * tile_row);
      pixels.go_on();
      to += pack.to_block;
    }
  }
}

__m256i load_block(const Word* from) {
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
}

void pack_pairs(const TilePack& pack) {
  const __m512i zip = _mm512_load_si512(zipped_words.order);
  for (std::int64_t step = 0; step < pack.steps; ++step) {
    Pixels pixels(pack, step);
    Word* to = pack.to + step * tile_words;
    for (std::int64_t block = 0; block < pack.blocks; ++block) {
#pragma GCC unroll 16
      for (std::int64_t pair = 0; pair < tile_pixels / 2; ++pair) {
        const __m512i both =
            _mm512_inserti64x4(_mm512_castsi256_si512(load_block(pixels.from[2 * pair])),
                               load_block(pixels.from[2 * pair + 1]), 1);
        _mm512_store_si512(to + pair * tile_row, _mm512_permutexvar_epi16(zip, both));
      }
      pixels.go_on();
      to += pack.to_block;
    }
  }
}

// One tap of one or two blocks of inputs and of outputs.
struct Product {
  const Word *x, *dy;
  std::int64_t steps;
  float* sums;
  std::int64_t next_in;  // from a block of inputs to the next, in sums
  bool add;
};

template <int ins, int outs>
void load_sums(const Product& product, const TileGradient& all) {
  if (!product.add) {
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
    return;
  }
  _tile_loadd(0, product.sums, row_bytes);
  if constexpr (ins == 2) {
    _tile_loadd(1, product.sums + product.next_in, row_bytes);
  }
  if constexpr (outs == 2) {
    _tile_loadd(2, product.sums + all.sums_of_out_block, row_bytes);
    if constexpr (ins == 2) {
      _tile_loadd(3, product.sums + all.sums_of_out_block + product.next_in, row_bytes);
    }
  }
}

template <int ins, int outs>
void store_sums(const Product& product, const TileGradient& all) {
  _tile_stored(0, product.sums, row_bytes);
  if constexpr (ins == 2) {
    _tile_stored(1, product.sums + product.next_in, row_bytes);
  }
  if constexpr (outs == 2) {
    _tile_stored(2, product.sums + all.sums_of_out_block, row_bytes);
    if constexpr (ins == 2) {
      _tile_stored(3, product.sums + all.sums_of_out_block + product.next_in, row_bytes);
    }
  }
}

template <int ins, int outs>
void multiply_tap(const Product& product, const TileGradient& all) {
  load_sums<ins, outs>(product, all);
  const Word *x = product.x, *dy = product.dy;
  for (std::int64_t step = product.steps; step > 0; --step) {
    _tile_loadd(4, x, row_bytes);
    _tile_loadd(6, dy, row_bytes);
    _tile_dpbf16ps(0, 4, 6);
    if constexpr (ins == 2) {
      _tile_loadd(5, x + all.x_block, row_bytes);
      _tile_dpbf16ps(1, 5, 6);
    }
    if constexpr (outs == 2) {
      _tile_loadd(7, dy + all.dy_block, row_bytes);
      _tile_dpbf16ps(2, 4, 7);
      if constexpr (ins == 2) {
        _tile_dpbf16ps(3, 5, 7);
      }
    }
    x += tile_words;
    dy += tile_words;
  }
  store_sums<ins, outs>(product, all);
}

// All taps of up to two blocks of inputs and of outputs, for the steps of a chunk.
void multiply_blocks(const TileGradient& gradient, std::int64_t out, std::int64_t in,
                     std::int64_t first, std::int64_t steps) {
  using Kernel = void (*)(const Product&, const TileGradient&);
  constexpr Kernel kernels[2][2]{{multiply_tap<1, 1>, multiply_tap<1, 2>},
                                 {multiply_tap<2, 1>, multiply_tap<2, 2>}};
  const Kernel kernel =
      kernels[gradient.in_blocks - in > 1 ? 1 : 0][gradient.out_blocks - out > 1 ? 1 : 0];
  const Word* const x = gradient.x + in * gradient.x_block + first * tile_words;
  const Word* const dy = gradient.dy + out * gradient.dy_block + first * tile_words;
  Product product{.x = x,
                  .dy = dy,
                  .steps = steps,
                  .sums = gradient.sums + out * gradient.sums_of_out_block +
                          in * gradient.tap_count * tile_sums,
                  .next_in = gradient.tap_count * tile_sums,
                  .add = gradient.add || first > 0};
  for (std::int64_t tap = 0; tap < gradient.tap_count; ++tap) {
    product.x = x + gradient.taps[tap].x;
    product.dy = dy + gradient.taps[tap].dy;
    kernel(product, gradient);
    product.sums += tile_sums;
  }
}

// Takes the steps in chunks of about equal size. The rows of a chunk of two blocks of inputs stay
// in the first-level cache while all outputs pass.
void multiply(const TileGradient& gradient) {
  _tile_loadconfig(&full_tiles);
  const std::int64_t chunks = (gradient.steps + max_steps_of_chunk - 1) / max_steps_of_chunk;
  for (std::int64_t chunk = 0; chunk < chunks; ++chunk) {
    const std::int64_t first = gradient.steps * chunk / chunks;
    const std::int64_t steps = gradient.steps * (chunk + 1) / chunks - first;
    for (std::int64_t in = 0; in < gradient.in_blocks; in += 2) {
      for (std::int64_t out = 0; out < gradient.out_blocks; out += 2) {
        multiply_blocks(gradient, out, in, first, steps);
      }
    }
  }
  _tile_release();
}

}  // namespace

const TileGradientLoops& amx_bf16_tile_gradient() {
  static constexpr TileGradientLoops loops{
      .pack_rows = pack_rows, .pack_pairs = pack_pairs, .multiply = multiply};
  return loops;
}

}  // namespace cnn::layers::cpu
