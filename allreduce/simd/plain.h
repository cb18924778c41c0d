#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

namespace cnn::allreduce::simd {

// Vectors of one element, in plain C++. File is a type local to a source file, so that each
// instruction set compiles its own code.
template <class File>
struct Plain {
  using Float = float;
  static constexpr std::size_t width = 1;

  static float load(const float* from) { return *from; }
  static void store(float* to, float value) { *to = value; }
  static float set(float value) { return value; }

  static std::uint16_t bf16(float value) {
    const auto bits = std::bit_cast<std::uint32_t>(value);
    if (value != value) {
      return static_cast<std::uint16_t>(bits >> 16U | 0x40U);
    }
    return static_cast<std::uint16_t>((bits + 0x7fffU + (bits >> 16U & 1U)) >> 16U);
  }

  static std::uint16_t f16(float value) {
    const auto bits = std::bit_cast<std::uint32_t>(value);
    const std::uint32_t sign = bits >> 16U & 0x8000U, magnitude = bits & 0x7fffffffU;
    if (magnitude > 0x7f800000U) {  // NaN, made quiet
      return static_cast<std::uint16_t>(sign | 0x7e00U | (magnitude >> 13U & 0x1ffU));
    }
    if (magnitude >= 0x47800000U) {  // 65536 and more
      return static_cast<std::uint16_t>(sign | 0x7c00U);
    }
    if (magnitude < 0x38800000U) {  // subnormal in f16: adding 1/2 rounds at the right bit
      const float shifted = std::bit_cast<float>(magnitude) + 0.5F;
      return static_cast<std::uint16_t>(
          sign | (std::bit_cast<std::uint32_t>(shifted) - std::bit_cast<std::uint32_t>(0.5F)));
    }
    const std::uint32_t rounded = magnitude + 0xfffU + (magnitude >> 13U & 1U);
    return static_cast<std::uint16_t>(sign | (rounded - 0x38000000U) >> 13U);
  }

  static float from_bf16(const std::uint16_t* from) {
    return std::bit_cast<float>(std::uint32_t{*from} << 16U);
  }
  static float from_f16(const std::uint16_t* from) {
    const std::uint32_t sign = (*from & 0x8000U) << 16U, magnitude = *from & 0x7fffU;
    if (magnitude >= 0x7c00U) {  // infinity, NaN
      const std::uint32_t quiet = magnitude > 0x7c00U ? 0x400000U : 0U;
      return std::bit_cast<float>(sign | 0x7f800000U | quiet | (magnitude & 0x3ffU) << 13U);
    }
    // Exponents differ by 112; multiplying by 2^112 also converts subnormal numbers.
    const float scaled = std::bit_cast<float>(magnitude << 13U) * 0x1p112F;
    return std::bit_cast<float>(sign | std::bit_cast<std::uint32_t>(scaled));
  }

  static void to_bf16(float value, std::uint16_t* to) { *to = bf16(value); }
  static void to_f16(float value, std::uint16_t* to) { *to = f16(value); }
  static float rounded_to_bf16(float value) {
    const std::uint16_t word = bf16(value);
    return from_bf16(&word);
  }
  static float rounded_to_f16(float value) {
    const std::uint16_t word = f16(value);
    return from_f16(&word);
  }
};

}  // namespace cnn::allreduce::simd
