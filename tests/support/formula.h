#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "runtime/tensor.h"

// The inputs of the golden runs (tests/golden): made by a formula, the same bits in any language.
namespace cnn::tests {

// 64 bits for element i of a tensor:
// splitmix64's finaliser of fnv1a(name) + seed * 0xD1B54A32D192ED03 + (i + 1) * 0x9E3779B97F4A7C15.
std::uint64_t formula_bits(std::string_view name, std::uint64_t i, std::uint64_t seed);

// (bits >> 40) / 2^23 - 1: in [-1, 1), exact.
float formula_unit(std::string_view name, std::uint64_t i, std::uint64_t seed);

// A variable, row-major in the shape of its checkpoint (kernels H, W, I, O; matrices in, out). The
// formula depends on the last part of the name: gamma = 1 + u / 8, moving_variance = 1 + u / 4,
// beta, moving_mean, biases = u / 16, else sqrt(6 / fan_in) u with fan_in = all dimensions but the
// last.
std::vector<float> formula_variable(std::string_view name, const Shape& saved, std::uint64_t seed);

// [batch, size, size, 3], channels fastest: coarse blocks of an eighth of the image, and noise.
std::vector<float> formula_images(std::int64_t batch, std::int64_t size, std::uint64_t seed);

// One label per example in [first, first + count).
std::vector<std::int32_t> formula_labels(std::int64_t batch, std::int32_t first, std::int32_t count,
                                         std::uint64_t seed);

}  // namespace cnn::tests
