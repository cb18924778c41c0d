#include <cstring>
#include <immintrin.h>

#include "data/images/simd/loops.h"

namespace cnn::data::simd {
namespace {

struct Avx512 {};

constexpr std::size_t together = 4;  // pixels of four values each fill a vector

__m128i bytes_at(const std::uint8_t* at) {
  std::int32_t bytes = 0;
  std::memcpy(&bytes, at, sizeof(bytes));
  return _mm_cvtsi32_si128(bytes);
}

// Returns four pixels of four values, of which the last is an unused byte, as floats.
__m512 pixels_at(const std::uint8_t* row, const std::int32_t* source) {
  const __m128i low = _mm_unpacklo_epi32(bytes_at(row + source[0]), bytes_at(row + source[1]));
  const __m128i high = _mm_unpacklo_epi32(bytes_at(row + source[2]), bytes_at(row + source[3]));
  return _mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(_mm_unpacklo_epi64(low, high)));
}

// Returns each of four weights for the four values of its pixel.
__m512 weights_at(const float* weight) {
  const __m512i of_pixel = _mm512_set_epi32(3, 3, 3, 3, 2, 2, 2, 2, 1, 1, 1, 1, 0, 0, 0, 0);
  return _mm512_permutexvar_ps(of_pixel, _mm512_castps128_ps512(_mm_loadu_ps(weight)));
}

__m128 pixel_at(const std::uint8_t* at) { return _mm_cvtepi32_ps(_mm_cvtepu8_epi32(bytes_at(at))); }

// The values that a store writes past its pixels are overwritten by the next store.
void bilinear(const std::uint8_t* row, const std::int32_t* source, const float* weight, float* out,
              std::size_t pixels) {
  const __m512i packed = _mm512_set_epi32(15, 11, 7, 3, 14, 13, 12, 10, 9, 8, 6, 5, 4, 2, 1, 0);
  const std::int32_t* const second = source + pixels;
  const float* const second_weight = weight + pixels;
  std::size_t i = 0;
  for (; i + together <= pixels; i += together) {
    const __m512 left = _mm512_mul_ps(pixels_at(row, source + i), weights_at(weight + i));
    const __m512 both =
        _mm512_fmadd_ps(pixels_at(row, second + i), weights_at(second_weight + i), left);
    _mm512_storeu_ps(out + 3 * i, _mm512_permutexvar_ps(packed, both));
  }
  for (; i < pixels; ++i) {
    const __m128 left = _mm_mul_ps(pixel_at(row + source[i]), _mm_set1_ps(weight[i]));
    _mm_storeu_ps(out + 3 * i,
                  _mm_fmadd_ps(pixel_at(row + second[i]), _mm_set1_ps(second_weight[i]), left));
  }
}

// One permutation picks both taps of 16 values.
[[gnu::target("avx512vbmi")]] void windows(const std::uint8_t* row, const WindowTaps& taps,
                                           float* out) {
  constexpr std::size_t n = WindowTaps::group;
  for (std::size_t g = 0; g < taps.groups; ++g) {
    const __m256i index =
        _mm256_loadu_si256(reinterpret_cast<const __m256i*>(taps.index + 2 * n * g));
    const __m512i window = _mm512_loadu_si512(row + taps.window[g]);
    const __m256i picked =
        _mm512_castsi512_si256(_mm512_permutexvar_epi8(_mm512_castsi256_si512(index), window));
    const __m512 first = _mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(_mm256_castsi256_si128(picked)));
    const __m512 second =
        _mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(_mm256_extracti128_si256(picked, 1)));
    const float* const weight = taps.weight + 2 * n * g;
    const __m512 left = _mm512_mul_ps(first, _mm512_loadu_ps(weight));
    _mm512_storeu_ps(out + n * g, _mm512_fmadd_ps(second, _mm512_loadu_ps(weight + n), left));
  }
}

// All stores of a row have the same operations before them, so that no value depends on where an
// image lies.
template <bool streams>
void blend_two(const WeightedRows& rows, const Finish& finish, float* out, std::size_t n) {
  constexpr std::size_t width = 16;
  const __m512 weight = _mm512_set1_ps(rows.weight[0]);
  const __m512 second_weight = _mm512_set1_ps(rows.weight[1]);
  const __m512 scale = _mm512_set1_ps(finish.scale);
  for (std::size_t i = 0; i < n; i += width) {
    const auto lanes = static_cast<__mmask16>(n - i < width ? (1U << (n - i)) - 1 : 0xffffU);
    const __m512 first = _mm512_mul_ps(_mm512_maskz_loadu_ps(lanes, rows.rows[0] + i), weight);
    const __m512 both =
        _mm512_fmadd_ps(_mm512_maskz_loadu_ps(lanes, rows.rows[1] + i), second_weight, first);
    const __m512 value =
        _mm512_fmadd_ps(both, scale, _mm512_maskz_loadu_ps(lanes, finish.shift + i));
    if constexpr (streams) {
      _mm512_stream_ps(out + i, value);
    } else {
      _mm512_mask_storeu_ps(out + i, lanes, value);
    }
  }
}

// Images go to memory past the caches, which would otherwise read each line before it is written;
// the next reader is another thread, a batch later.
void blend(const WeightedRows& rows, const Finish& finish, float* out, std::size_t n) {
  constexpr std::size_t width = 16;
  if (rows.count != 2) {
    Loops<Avx512>::blend(rows, finish, out, n);
  } else if (n % width == 0 &&
             reinterpret_cast<std::uintptr_t>(out) % (width * sizeof(float)) == 0) {
    blend_two<true>(rows, finish, out, n);
    _mm_sfence();
  } else {
    blend_two<false>(rows, finish, out, n);
  }
}

}  // namespace

const PixelLoops& avx512_pixel_loops() {
  static constexpr PixelLoops table{
      Loops<Avx512>::widen, Loops<Avx512>::gather, bilinear, Loops<Avx512>::windows, false, blend};
  return table;
}

const PixelLoops& avx512_vbmi_pixel_loops() {
  static constexpr PixelLoops table{
      Loops<Avx512>::widen, Loops<Avx512>::gather, bilinear, windows, true, blend};
  return table;
}

}  // namespace cnn::data::simd
