#pragma once

#include <cstdint>
#include <immintrin.h>

// The vector type of the AVX-512 variants; only files compiled for AVX-512 include this.
namespace cnn::layers::cpu {

// Vectors of 16 floats with the operations of the loop templates. Words, which are bf16, are
// rounded by Variant::narrow(). A variant is a type local to the file that is compiled for its
// instruction set, so that no other file shares the code of these functions.
template <class Variant>
struct Avx512Vector {
  using Float = __m512;
  using Word = std::uint16_t;  // bf16
  static constexpr std::int64_t width = 16;
  static constexpr bool reads_apart = true;  // see each_tile() in matrix_loops.h
  // The largest number that is stored as zero: half of the smallest word rounds to even, zero.
  static constexpr float largest_zero_word = 0x1p-134F;
  struct All {};
  struct First {
    __mmask16 mask;
  };

  static First first(std::int64_t count) { return {static_cast<__mmask16>((1u << count) - 1)}; }

  static Float zero() { return _mm512_setzero_ps(); }
  static Float set(float value) { return _mm512_set1_ps(value); }

  static Float load(const float* from, All) { return _mm512_loadu_ps(from); }
  static Float load(const float* from, First lanes) {
    return _mm512_maskz_loadu_ps(lanes.mask, from);
  }
  static Float load(const Word* from, All) {
    return widen(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(from)));
  }
  static Float load(const Word* from, First lanes) {
    return widen(_mm256_maskz_loadu_epi16(lanes.mask, from));
  }
  static Float load(const std::uint8_t* from, All) {
    const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
    return _mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(bytes));
  }
  static Float load(const std::uint8_t* from, First lanes) {
    return _mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(_mm_maskz_loadu_epi8(lanes.mask, from)));
  }

  static void store(float* to, Float value, All) { _mm512_storeu_ps(to, value); }
  static void store(float* to, Float value, First lanes) {
    _mm512_mask_storeu_ps(to, lanes.mask, value);
  }
  static void store(Word* to, Float value, All) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), Variant::narrow(value));
  }
  static void store(Word* to, Float value, First lanes) {
    _mm256_mask_storeu_epi16(to, lanes.mask, Variant::narrow(value));
  }

  // Stores whole numbers below 256 as bytes.
  static void store(std::uint8_t* to, Float value, All) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to),
                     _mm512_cvtepi32_epi8(_mm512_cvtps_epi32(value)));
  }
  static void store(std::uint8_t* to, Float value, First lanes) {
    _mm512_mask_cvtepi32_storeu_epi8(to, lanes.mask, _mm512_cvtps_epi32(value));
  }

  // Non-temporal store, aligned to the vector; call fence() before other threads read.
  static void stream(float* to, Float value) { _mm512_stream_ps(to, value); }
  static void stream(Word* to, Float value) {
    _mm256_stream_si256(reinterpret_cast<__m256i*>(to), Variant::narrow(value));
  }
  static void fence() { _mm_sfence(); }

  static Float fma(Float a, Float b, Float c) { return _mm512_fmadd_ps(a, b, c); }
  // Both return b if a or b is NaN.
  static Float max(Float a, Float b) { return _mm512_max_ps(a, b); }
  static Float min(Float a, Float b) { return _mm512_min_ps(a, b); }
  static Float sqrt(Float a) { return _mm512_sqrt_ps(a); }
  // Bit i is set if lane i of x is above that of bound, or one of them is NaN.
  static unsigned bits_above(Float x, Float bound) {
    return _mm512_cmp_ps_mask(x, bound, _CMP_NLE_UQ);
  }
  // Returns value in the lanes whose bit is set, else value times zero, which is +0 or NaN.
  static Float gated(Float value, unsigned bits) {
    const Float closed = _mm512_fmadd_ps(value, zero(), zero());
    return _mm512_mask_mov_ps(closed, static_cast<__mmask16>(bits), value);
  }
  // Returns value in the lanes where x is above bound or one of them is NaN, else value times zero.
  static Float gated(Float value, Float x, Float bound) {
    return gated(value, bits_above(x, bound));
  }
  using Mask = __mmask16;
  static Mask not_nan(Float x) { return _mm512_cmp_ps_mask(x, x, _CMP_ORD_Q); }
  // In lanes where `value` is larger than `best`, or the first NaN: best = value, place = at.
  // known: lanes where best is not NaN.
  static void take_larger(Float value, Float at, Float& best, Float& place, Mask& known) {
    const Mask larger = _mm512_mask_cmp_ps_mask(known, value, best, _CMP_NLE_UQ);
    known = _mm512_mask_cmp_ps_mask(known, value, value, _CMP_ORD_Q);
    best = _mm512_mask_mov_ps(best, larger, value);
    place = _mm512_mask_mov_ps(place, larger, at);
  }
  static bool any_not_finite(Float x) {  // inf or nan, by the exponent
    const __m512i magnitude =
        _mm512_and_si512(_mm512_castps_si512(x), _mm512_set1_epi32(0x7fffffff));
    return _mm512_cmpge_epi32_mask(magnitude, _mm512_set1_epi32(0x7f800000)) != 0;
  }

  // Eight doubles; wide_low and wide_high convert the halves of a vector.
  using Wide = __m512d;
  static constexpr std::int64_t wide_width = 8;
  static Wide wide_zero() { return _mm512_setzero_pd(); }
  static Wide wide_low(Float x) { return _mm512_cvtps_pd(_mm512_castps512_ps256(x)); }
  static Wide wide_high(Float x) { return _mm512_cvtps_pd(_mm512_extractf32x8_ps(x, 1)); }
  static Wide wide_fma(Wide a, Wide b, Wide c) { return _mm512_fmadd_pd(a, b, c); }
  static void wide_store(double* to, Wide value) { _mm512_storeu_pd(to, value); }

 private:
  static Float widen(__m256i words) {
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(words), 16));
  }
};

}  // namespace cnn::layers::cpu
