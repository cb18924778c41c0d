#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "runtime/graph.h"

namespace cnn::layers {

// Fills plain row-major f32 values. Draw i depends only on (seed, name, i), a counter-based
// generator, so order and threads do not matter. Truncated normals are cut at two stddev; the
// inverse of their distribution function yields the distribution of redrawing, at one draw per
// value. Large tensors use several threads: about 20 ns of one core per value. values: the whole
// tensor, or a part that starts with the element `first_draw`.
void fill(const Initializer& initializer, std::uint64_t seed, std::string_view name,
          std::span<float> values, std::size_t first_draw = 0);

// Returns 64 random bits for counter i of a stream: the splitmix64 finaliser of stream + (i + 1) *
// 0x9E3779B97F4A7C15.
std::uint64_t random_bits(std::uint64_t stream, std::uint64_t i);
std::uint64_t fnv1a(std::string_view text);  // 64-bit FNV-1a

}  // namespace cnn::layers
