#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string_view>

#include "runtime/op.h"

namespace cnn::layers {

// Throws Error "<op>: <why>, given <descriptions of the inputs>" unless ok.
void require(bool ok, const Op& op, std::span<const TensorDesc> in, std::string_view why);
void require_count(const Op& op, std::span<const TensorDesc> in, std::size_t count);

// The sizes of an image [N, C, H, W].
struct Dims {
  std::int64_t n = 0, c = 0, h = 0, w = 0;
  std::int64_t pixels() const { return h * w; }
};
inline Dims dims(const Shape& shape) { return {shape[0], shape[1], shape[2], shape[3]}; }

inline bool is_real(DataType type) { return type != DataType::i32 && type != DataType::u8; }
inline TensorDesc described(Shape shape, DataType type) { return {.shape = shape, .type = type}; }

struct Range {
  std::int64_t begin = 0, end = 0;
};

// Returns the outputs p of [0, outputs) for which p * stride + offset lies in [0, size): those that
// read a pixel, not padding. Empty if begin >= end.
inline Range inside(std::int64_t outputs, std::int64_t size, std::int64_t stride,
                    std::int64_t offset) {
  const std::int64_t begin = offset >= 0 ? 0 : (stride - 1 - offset) / stride;
  const std::int64_t last = size - 1 - offset;
  return {begin, last < 0 ? 0 : std::min(outputs, last / stride + 1)};
}

}  // namespace cnn::layers
