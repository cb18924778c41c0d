#include <cstddef>
#include <cstdint>
#include <immintrin.h>

#include "allreduce/simd/plain.h"
#include "allreduce/simd/sum_loops.h"
#include "allreduce/simd/table.h"

// The compiler flags of this file enable its instruction set. The vector types are local to this
// file and arguments of all loop templates, so that no other file shares their code.
namespace cnn::allreduce::simd {
namespace {

struct ThisFile {};
using One = Plain<ThisFile>;

struct Avx2 {
  using Float = __m256;
  static constexpr std::size_t width = 8;

  static Float load(const float* from) { return _mm256_loadu_ps(from); }
  static void store(float* to, Float value) { _mm256_storeu_ps(to, value); }
  static Float set(float value) { return _mm256_set1_ps(value); }

  // Returns the rounded value in the upper half of each element; the lower half is undefined.
  static __m256i rounded(Float value) {
    const __m256i bits = _mm256_castps_si256(value);
    const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
    const __m256i even = _mm256_add_epi32(_mm256_add_epi32(bits, _mm256_set1_epi32(0x7fff)), odd);
    const __m256i quiet = _mm256_or_si256(bits, _mm256_set1_epi32(0x400000));
    const __m256i nan = _mm256_castps_si256(_mm256_cmp_ps(value, value, _CMP_UNORD_Q));
    return _mm256_blendv_epi8(even, quiet, nan);
  }
  static void to_bf16(Float value, std::uint16_t* to) {
    const __m256i words = _mm256_srli_epi32(rounded(value), 16);
    const __m256i halves = _mm256_packus_epi32(words, words);  // 0-3 0-3 4-7 4-7
    const __m256i all = _mm256_permute4x64_epi64(halves, 0x08);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to), _mm256_castsi256_si128(all));
  }
  static void to_f16(Float value, std::uint16_t* to) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to),
                     _mm256_cvtps_ph(value, _MM_FROUND_TO_NEAREST_INT));
  }
  static Float from_bf16(const std::uint16_t* from) {
    const __m256i words =
        _mm256_cvtepu16_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from)));
    return _mm256_castsi256_ps(_mm256_slli_epi32(words, 16));
  }
  static Float from_f16(const std::uint16_t* from) {
    return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from)));
  }
  static Float rounded_to_bf16(Float value) {
    const __m256i upper = _mm256_set1_epi32(static_cast<int>(0xffff0000U));
    return _mm256_castsi256_ps(_mm256_and_si256(rounded(value), upper));
  }
  static Float rounded_to_f16(Float value) {
    return _mm256_cvtph_ps(_mm256_cvtps_ph(value, _MM_FROUND_TO_NEAREST_INT));
  }
};

}  // namespace

const Loops& avx2_loops() {
  static constexpr Loops loops = AllLoops<Avx2, One>::table("avx2");
  return loops;
}

}  // namespace cnn::allreduce::simd
