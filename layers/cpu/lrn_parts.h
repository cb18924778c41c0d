#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <type_traits>

#include "runtime/tensor.h"

// Code that both kinds of local response normalisation share.
namespace cnn::layers::cpu {

inline constexpr std::int64_t lrn_lanes = 16;
using LrnRow = std::array<float, lrn_lanes>;

template <class T>
float widened(T value) {
  if constexpr (std::is_same_v<T, BFloat16>) {
    return to_float(value);
  } else {
    return value;
  }
}

template <class T>
T narrowed(float value) {
  if constexpr (std::is_same_v<T, BFloat16>) {
    return to_bf16(value);
  } else {
    return value;
  }
}

// Returns s^-beta. The usual beta of 3/4 needs only square roots.
inline float lrn_power(float s, float beta) {
  if (beta == 0.75F) {
    const float root = std::sqrt(s);
    return 1 / (root * std::sqrt(root));
  }
  return std::pow(s, -beta);
}

}  // namespace cnn::layers::cpu
