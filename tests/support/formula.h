#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "runtime/tensor.h"

// Makes the inputs of the golden runs (tests/golden) by a formula that gives the same bits in any
// language.
namespace cnn::tests {

// Returns 64 bits for element i of a tensor, which are splitmix64's finaliser of fnv1a(name) + seed
// * 0xD1B54A32D192ED03 + (i + 1) * 0x9E3779B97F4A7C15.
std::uint64_t formula_bits(std::string_view name, std::uint64_t i, std::uint64_t seed);

// Returns (bits >> 40) / 2^23 - 1, which is in [-1, 1) and exact.
float formula_unit(std::string_view name, std::uint64_t i, std::uint64_t seed);

// Returns a variable's values, row-major in its checkpoint shape (kernels H, W, I, O; matrices in,
// out). The formula depends on the last part of the name: gamma = 1 + u / 8, moving_variance = 1 +
// u / 4, beta, moving_mean and biases = u / 16, all others sqrt(6 / fan_in) u, where fan_in is the
// product of all dimensions except the last.
std::vector<float> formula_variable(std::string_view name, const Shape& saved, std::uint64_t seed);

// Returns images [batch, size, size, 3] with coarse blocks of an eighth of the image, and noise.
// Channels are innermost.
std::vector<float> formula_images(std::int64_t batch, std::int64_t size, std::uint64_t seed);

// Returns one label per example, in [first, first + count).
std::vector<std::int32_t> formula_labels(std::int64_t batch, std::int32_t first, std::int32_t count,
                                         std::uint64_t seed);

}  // namespace cnn::tests
