#include <cstdint>
#include <immintrin.h>

#include "layers/cpu/simd/average_pool_loops.h"
#include "layers/cpu/simd/pool_loops.h"
#include "layers/cpu/simd/table.h"

// The compiler flags of this file enable its instruction set. The vector type is local to this file
// and an argument of all loop templates, so that no other file shares their code.
namespace cnn::layers::cpu {

namespace {

// Vectors of 8 floats with the operations of the loop templates.
struct Avx2 {
  using Float = __m256;
  using Word = std::uint16_t;  // bf16
  static constexpr std::int64_t width = 8;
  static constexpr bool reads_apart = true;  // see each_tile() in matrix_loops.h
  // The largest number that is stored as zero: half of the smallest word rounds to even, zero.
  static constexpr float largest_zero_word = 0x1p-134F;
  struct All {};
  struct First {
    std::int64_t count;
  };

  static First first(std::int64_t count) { return {count}; }

  static Float zero() { return _mm256_setzero_ps(); }
  static Float set(float value) { return _mm256_set1_ps(value); }

  static Float load(const float* from, All) { return _mm256_loadu_ps(from); }
  static Float load(const float* from, First lanes) {
    return _mm256_maskload_ps(from, mask(lanes.count));
  }
  static Float load(const Word* from, All) {
    return widen(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from)));
  }
  static Float load(const Word* from, First lanes) {  // AVX2 has no masks for 16-bit words
    alignas(16) Word words[8] = {};
    __builtin_memcpy(words, from, static_cast<std::size_t>(lanes.count) * sizeof(Word));
    return widen(_mm_load_si128(reinterpret_cast<const __m128i*>(words)));
  }
  static Float load(const std::uint8_t* from, All) {
    const __m128i bytes = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(from));
    return _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(bytes));
  }
  static Float load(const std::uint8_t* from, First lanes) {
    std::uint8_t bytes[8] = {};
    __builtin_memcpy(bytes, from, static_cast<std::size_t>(lanes.count));
    return load(bytes, All{});
  }

  static void store(float* to, Float value, All) { _mm256_storeu_ps(to, value); }
  static void store(float* to, Float value, First lanes) {
    _mm256_maskstore_ps(to, mask(lanes.count), value);
  }
  static void store(Word* to, Float value, All) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to), narrow(value));
  }
  static void store(Word* to, Float value, First lanes) {
    alignas(16) Word words[8];
    _mm_store_si128(reinterpret_cast<__m128i*>(words), narrow(value));
    __builtin_memcpy(to, words, static_cast<std::size_t>(lanes.count) * sizeof(Word));
  }

  // Stores whole numbers below 256 as bytes.
  static void store(std::uint8_t* to, Float value, All) {
    const std::uint64_t bytes = bytes_of(value);
    __builtin_memcpy(to, &bytes, sizeof(bytes));
  }
  static void store(std::uint8_t* to, Float value, First lanes) {
    const std::uint64_t bytes = bytes_of(value);
    __builtin_memcpy(to, &bytes, static_cast<std::size_t>(lanes.count));
  }

  // Non-temporal store, aligned to the vector; call fence() before other threads read.
  static void stream(float* to, Float value) { _mm256_stream_ps(to, value); }
  static void stream(Word* to, Float value) {
    _mm_stream_si128(reinterpret_cast<__m128i*>(to), narrow(value));
  }
  static void fence() { _mm_sfence(); }

  static Float fma(Float a, Float b, Float c) { return _mm256_fmadd_ps(a, b, c); }
  // Both return b if a or b is NaN.
  static Float max(Float a, Float b) { return _mm256_max_ps(a, b); }
  static Float min(Float a, Float b) { return _mm256_min_ps(a, b); }
  static Float sqrt(Float a) { return _mm256_sqrt_ps(a); }
  // Bit i is set if lane i of x is above that of bound, or one of them is NaN.
  static unsigned bits_above(Float x, Float bound) {
    return static_cast<unsigned>(_mm256_movemask_ps(_mm256_cmp_ps(x, bound, _CMP_NLE_UQ)));
  }
  // Returns value in the lanes whose bit is set, else value times zero, which is +0 or NaN.
  static Float gated(Float value, unsigned bits) {
    const __m256i lane = _mm256_setr_epi32(1, 2, 4, 8, 16, 32, 64, 128);
    const __m256i chosen = _mm256_and_si256(_mm256_set1_epi32(static_cast<int>(bits)), lane);
    return open_or_zero(value, _mm256_castsi256_ps(_mm256_cmpeq_epi32(chosen, lane)));
  }
  // Returns value in the lanes where x is above bound or one of them is NaN, else value times zero.
  static Float gated(Float value, Float x, Float bound) {
    return open_or_zero(value, _mm256_cmp_ps(x, bound, _CMP_NLE_UQ));
  }
  using Mask = __m256;  // all bits of a lane, or none
  static Mask not_nan(Float x) { return _mm256_cmp_ps(x, x, _CMP_ORD_Q); }
  // In lanes where `value` is larger than `best`, or the first NaN: best = value, place = at.
  // known: lanes where best is not NaN.
  static void take_larger(Float value, Float at, Float& best, Float& place, Mask& known) {
    const Mask larger = _mm256_and_ps(known, _mm256_cmp_ps(value, best, _CMP_NLE_UQ));
    known = _mm256_and_ps(known, not_nan(value));
    best = _mm256_blendv_ps(best, value, larger);
    place = _mm256_blendv_ps(place, at, larger);
  }
  static bool any_not_finite(Float x) {  // inf or nan, by the exponent
    const __m256i magnitude =
        _mm256_and_si256(_mm256_castps_si256(x), _mm256_set1_epi32(0x7fffffff));
    const __m256i above = _mm256_cmpgt_epi32(magnitude, _mm256_set1_epi32(0x7f7fffff));
    return _mm256_testz_si256(above, above) == 0;
  }

  // Four doubles; wide_low and wide_high convert the halves of a vector.
  using Wide = __m256d;
  static constexpr std::int64_t wide_width = 4;
  static Wide wide_zero() { return _mm256_setzero_pd(); }
  static Wide wide_low(Float x) { return _mm256_cvtps_pd(_mm256_castps256_ps128(x)); }
  static Wide wide_high(Float x) { return _mm256_cvtps_pd(_mm256_extractf128_ps(x, 1)); }
  static Wide wide_fma(Wide a, Wide b, Wide c) { return _mm256_fmadd_pd(a, b, c); }
  static void wide_store(double* to, Wide value) { _mm256_storeu_pd(to, value); }

 private:
  static __m256i mask(std::int64_t count) {  // sign bits of the first `count` lanes
    const __m256i lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    return _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int>(count)), lane);
  }
  static Float open_or_zero(Float value, Float open) {
    return _mm256_blendv_ps(_mm256_fmadd_ps(value, zero(), zero()), value, open);
  }
  static std::uint64_t bytes_of(Float value) {
    const __m256i words = _mm256_cvtps_epi32(value);
    const __m128i halves =
        _mm_packus_epi32(_mm256_castsi256_si128(words), _mm256_extracti128_si256(words, 1));
    return static_cast<std::uint64_t>(_mm_cvtsi128_si64(_mm_packus_epi16(halves, halves)));
  }
  static Float widen(__m128i words) {
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(words), 16));
  }
  // Rounds to nearest even like to_bf16: NaN stays NaN.
  static __m128i narrow(Float value) {
    const __m256i bits = _mm256_castps_si256(value);
    const __m256i upper = _mm256_srli_epi32(bits, 16);
    const __m256i odd = _mm256_and_si256(upper, _mm256_set1_epi32(1));
    const __m256i carry = _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff));
    const __m256i rounded = _mm256_srli_epi32(_mm256_add_epi32(bits, carry), 16);
    const __m256i nan = _mm256_castps_si256(_mm256_cmp_ps(value, value, _CMP_UNORD_Q));
    const __m256i quiet = _mm256_or_si256(upper, _mm256_set1_epi32(0x40));
    const __m256i chosen = _mm256_blendv_epi8(rounded, quiet, nan);
    const __m256i packed = _mm256_packus_epi32(chosen, chosen);  // within each half
    return _mm256_castsi256_si128(_mm256_permute4x64_epi64(packed, 0b1000));
  }
};

}  // namespace

const AveragePoolLoops& avx2_average_pool() {
  static constexpr AveragePoolLoops loops = make_average_pool<Avx2>();
  return loops;
}

const MaxPoolLoops& avx2_max_pool() {
  static constexpr MaxPoolLoops loops = make_max_pool<Avx2>();
  return loops;
}

const Loops& avx2_loops() {
  static constexpr Loops loops = make_loops<Avx2>("avx2");
  return loops;
}

}  // namespace cnn::layers::cpu
