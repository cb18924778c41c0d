#include <immintrin.h>

#include "layers/cpu/simd/weight_pairs.h"
#include "layers/cpu/simd/zipped_words.h"

// The compiler flags of this file enable its instruction set.
namespace cnn::layers::cpu {
namespace {

// Rounds 16 numbers of `low`, then 16 of `high`.
__m512i rounded(const float* low, const float* high) {
  return (__m512i)_mm512_cvtne2ps_pbh(_mm512_loadu_ps(high), _mm512_loadu_ps(low));
}

void store(const WeightBlock& block, std::int64_t line, __m512i pairs) {
  _mm512_storeu_si512(block.to + line * block.to_line, pairs);
}

void pair_inputs(const WeightBlock& block) {
  const __m512i zip = _mm512_load_si512(zipped_words.order);
#pragma GCC unroll 8
  for (std::int64_t pair = 0; pair < 8; ++pair) {
    const float* const row = block.from + 2 * pair * block.from_row;
    store(block, pair, _mm512_permutexvar_epi16(zip, rounded(row, row + block.from_row)));
  }
}

// Rows i and i + 8 are rounded together, so that a lane of 128 bits has four pairs of one row. Two
// rounds of unpacking gather a pair of rows 0 to 3 in each lane; lanes of 16 rows then make a line.
void pair_outputs(const WeightBlock& block) {
  __m512i rows[8], twos[8], fours[8];
#pragma GCC unroll 8
  for (std::int64_t i = 0; i < 8; ++i) {
    const float* const row = block.from + i * block.from_row;
    rows[i] = rounded(row, row + 8 * block.from_row);
  }
#pragma GCC unroll 4
  for (std::int64_t i = 0; i < 4; ++i) {  // of rows 2 i and 2 i + 1: pairs 0 and 1, then 2 and 3
    twos[2 * i] = _mm512_unpacklo_epi32(rows[2 * i], rows[2 * i + 1]);
    twos[2 * i + 1] = _mm512_unpackhi_epi32(rows[2 * i], rows[2 * i + 1]);
  }
#pragma GCC unroll 2
  for (std::int64_t half = 0; half < 2; ++half) {  // of rows 4 half to 4 half + 3: pairs 0 to 3
    const __m512i* const two = twos + 4 * half;
    fours[4 * half] = _mm512_unpacklo_epi64(two[0], two[2]);
    fours[4 * half + 1] = _mm512_unpackhi_epi64(two[0], two[2]);
    fours[4 * half + 2] = _mm512_unpacklo_epi64(two[1], two[3]);
    fours[4 * half + 3] = _mm512_unpackhi_epi64(two[1], two[3]);
  }
  // Lanes of fours[p]: rows 0 to 3 of pairs p and p + 4, then rows 8 to 11; fours[4 + p]: rows 4 to
  // 7, then 12 to 15.
  const __m512i even = _mm512_setr_epi64(0, 1, 8, 9, 4, 5, 12, 13);
  const __m512i odd = _mm512_setr_epi64(2, 3, 10, 11, 6, 7, 14, 15);
#pragma GCC unroll 4
  for (std::int64_t p = 0; p < 4; ++p) {
    store(block, p, _mm512_permutex2var_epi64(fours[p], even, fours[4 + p]));
    store(block, p + 4, _mm512_permutex2var_epi64(fours[p], odd, fours[4 + p]));
  }
}

}  // namespace

const WeightPairLoops& avx512_bf16_weight_pairs() {
  static constexpr WeightPairLoops loops{.pair_inputs = pair_inputs, .pair_outputs = pair_outputs};
  return loops;
}

}  // namespace cnn::layers::cpu
