#pragma once

#include <cstdint>

#include "runtime/tensor.h"

// A vector type for tests of loop templates whose code depends on the width of vectors.
namespace cnn::tests {

// Vectors as wide as those of AVX-512, which the compiler makes of what the processor has.
struct SixteenFloats {
  using Float [[gnu::vector_size(64)]] = float;
  static constexpr std::int64_t width = 16;
  struct All {};

  static Float zero() { return Float{}; }
  static Float set(float value) { return Float{} + value; }
  static Float load(const float* from, All /*lanes*/) {
    Float value;
    __builtin_memcpy(&value, from, sizeof value);
    return value;
  }
  static Float load(const std::uint16_t* from, All /*lanes*/) {
    Float value{};
    for (int i = 0; i < 16; ++i) {
      value[i] = to_float(BFloat16{from[i]});
    }
    return value;
  }
  static void store(float* to, Float value, All /*lanes*/) {
    __builtin_memcpy(to, &value, sizeof value);
  }
  static void store(std::uint16_t* to, Float value, All /*lanes*/) {
    for (int i = 0; i < 16; ++i) {
      to[i] = to_bf16(value[i]).bits;
    }
  }
  static Float fma(Float a, Float b, Float c) { return a * b + c; }
  static Float max(Float a, Float b) { return a > b ? a : b; }
};

}  // namespace cnn::tests
