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

struct Avx512 {
  using Float = __m512;
  static constexpr std::size_t width = 16;

  static Float load(const float* from) { return _mm512_loadu_ps(from); }
  static void store(float* to, Float value) { _mm512_storeu_ps(to, value); }
  static Float set(float value) { return _mm512_set1_ps(value); }

  // Returns the rounded value in the upper half of each element; the lower half is undefined.
  static __m512i rounded(Float value) {
    const __m512i bits = _mm512_castps_si512(value);
    const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
    const __m512i even = _mm512_add_epi32(_mm512_add_epi32(bits, _mm512_set1_epi32(0x7fff)), odd);
    const __mmask16 nan = _mm512_cmp_ps_mask(value, value, _CMP_UNORD_Q);
    return _mm512_mask_or_epi32(even, nan, bits, _mm512_set1_epi32(0x400000));
  }
  static void to_bf16(Float value, std::uint16_t* to) {
    const __m512i words = _mm512_srli_epi32(rounded(value), 16);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), _mm512_cvtepi32_epi16(words));
  }
  static void to_f16(Float value, std::uint16_t* to) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to),
                        _mm512_cvtps_ph(value, _MM_FROUND_TO_NEAREST_INT));
  }
  static Float from_bf16(const std::uint16_t* from) {
    const __m512i words =
        _mm512_cvtepu16_epi32(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(from)));
    return _mm512_castsi512_ps(_mm512_slli_epi32(words, 16));
  }
  static Float from_f16(const std::uint16_t* from) {
    return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(from)));
  }
  static Float rounded_to_bf16(Float value) {
    const __m512i upper = _mm512_set1_epi32(static_cast<int>(0xffff0000U));
    return _mm512_castsi512_ps(_mm512_and_si512(rounded(value), upper));
  }
  static Float rounded_to_f16(Float value) {
    return _mm512_cvtph_ps(_mm512_cvtps_ph(value, _MM_FROUND_TO_NEAREST_INT));
  }
};

}  // namespace

const Loops& avx512_loops() {
  static constexpr Loops loops = AllLoops<Avx512, One>::table("avx512");
  return loops;
}

}  // namespace cnn::allreduce::simd
