#include <cstring>
#include <immintrin.h>

#include "data/images/simd/loops.h"

namespace cnn::data::simd {
namespace {

struct Avx2 {};

// Returns four bytes as floats: a pixel, and an unused byte.
__m128 pixel_at(const std::uint8_t* row, std::int32_t offset) {
  std::int32_t bytes = 0;
  std::memcpy(&bytes, row + offset, sizeof(bytes));
  return _mm_cvtepi32_ps(_mm_cvtepu8_epi32(_mm_cvtsi32_si128(bytes)));
}

// Each pixel writes four values; the next pixel overwrites the last of them.
void bilinear(const std::uint8_t* row, const std::int32_t* source, const float* weight, float* out,
              std::size_t pixels) {
  const std::int32_t* const second = source + pixels;
  const float* const second_weight = weight + pixels;
  for (std::size_t i = 0; i < pixels; ++i) {
    const __m128 left = _mm_mul_ps(pixel_at(row, source[i]), _mm_set1_ps(weight[i]));
    _mm_storeu_ps(out + 3 * i,
                  _mm_fmadd_ps(pixel_at(row, second[i]), _mm_set1_ps(second_weight[i]), left));
  }
}

}  // namespace

const PixelLoops& avx2_pixel_loops() {
  static constexpr PixelLoops table{
      Loops<Avx2>::widen, Loops<Avx2>::gather, bilinear, Loops<Avx2>::windows, false,
      Loops<Avx2>::blend};
  return table;
}

}  // namespace cnn::data::simd
