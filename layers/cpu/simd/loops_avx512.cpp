#include <immintrin.h>

#include "layers/cpu/simd/average_pool_loops.h"
#include "layers/cpu/simd/avx512_vector.h"
#include "layers/cpu/simd/pool_loops.h"
#include "layers/cpu/simd/table.h"

// The compiler flags of this file enable its instruction set.
namespace cnn::layers::cpu {

namespace {

struct Avx512 : Avx512Vector<Avx512> {
  // Rounds to nearest even like to_bf16: NaN stays NaN.
  static __m256i narrow(Float value) {
    const __m512i bits = _mm512_castps_si512(value);
    const __m512i upper = _mm512_srli_epi32(bits, 16);
    const __m512i odd = _mm512_and_si512(upper, _mm512_set1_epi32(1));
    const __m512i carry = _mm512_add_epi32(odd, _mm512_set1_epi32(0x7fff));
    const __m512i rounded = _mm512_srli_epi32(_mm512_add_epi32(bits, carry), 16);
    const __mmask16 nan = _mm512_cmp_ps_mask(value, value, _CMP_UNORD_Q);
    const __m512i quiet = _mm512_or_si512(upper, _mm512_set1_epi32(0x40));
    return _mm512_cvtepi32_epi16(_mm512_mask_mov_epi32(rounded, nan, quiet));
  }
};

}  // namespace

const AveragePoolLoops& avx512_average_pool() {
  static constexpr AveragePoolLoops loops = make_average_pool<Avx512>();
  return loops;
}

const MaxPoolLoops& avx512_max_pool() {
  static constexpr MaxPoolLoops loops = make_max_pool<Avx512>();
  return loops;
}

const Loops& avx512_loops() {
  static constexpr Loops loops = make_loops<Avx512>("avx512");
  return loops;
}

}  // namespace cnn::layers::cpu
