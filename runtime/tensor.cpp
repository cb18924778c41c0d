#include "runtime/tensor.h"

#include <bit>
#include <cmath>

#include "runtime/divide_up.h"
#include "runtime/error.h"

namespace cnn {

std::size_t size_of(DataType type) {
  switch (type) {
    case DataType::f32:
    case DataType::i32:
      return 4;
    case DataType::f16:
    case DataType::bf16:
      return 2;
    case DataType::u8:
      return 1;
  }
  throw Error("size_of: no such data type");
}

std::string_view name_of(DataType type) {
  constexpr std::array<std::string_view, 5> names{"f32", "f16", "bf16", "i32", "u8"};
  return names.at(static_cast<std::size_t>(type));
}

std::string_view name_of(Layout layout) {
  constexpr std::array<std::string_view, 4> names{"nchw", "nhwc", "nchw16c", "packed"};
  return names.at(static_cast<std::size_t>(layout));
}

Shape::Shape(std::initializer_list<std::int64_t> dims)
    : Shape(std::span<const std::int64_t>(dims.begin(), dims.size())) {}

Shape::Shape(std::span<const std::int64_t> dims) : rank_(dims.size()) {
  check(rank_ <= max_rank, "a shape has at most five dimensions");
  for (std::size_t axis = 0; axis < rank_; ++axis) {
    check(dims[axis] >= 0, "a dimension cannot be negative");
    dims_[axis] = dims[axis];
  }
}

std::int64_t Shape::elements() const {
  std::int64_t product = 1;
  for (const std::int64_t dim : *this) {
    product *= dim;
  }
  return product;
}

std::string to_string(const Shape& shape) {
  std::string text = "[";
  for (std::size_t axis = 0; axis < shape.rank(); ++axis) {
    text += (axis == 0 ? "" : ", ") + std::to_string(shape[axis]);
  }
  return text + "]";
}

std::size_t TensorDesc::bytes() const {
  if (layout == Layout::packed) {
    check(packing != nullptr, "a packed tensor without a packing");
    return packing->bytes;
  }
  auto elements = static_cast<std::size_t>(shape.elements());
  if (layout == Layout::nchw16c && shape.rank() >= 2 && shape[1] > 0) {
    const auto channels = static_cast<std::size_t>(shape[1]);
    elements = elements / channels * round_up(channels, 16);
  }
  return elements * size_of(type);
}

std::size_t TensorDesc::extent() const {
  if (pitch == 0 || shape.elements() == 0) {
    return bytes();
  }
  const std::int64_t pixels = shape.elements() / shape[1];
  return static_cast<std::size_t>((pixels - 1) * pitch + shape[1]) * size_of(type);
}

bool TensorDesc::operator==(const TensorDesc& other) const {
  if (shape != other.shape || type != other.type || layout != other.layout ||
      pitch != other.pitch) {
    return false;
  }
  if (packing == nullptr || other.packing == nullptr) {
    return packing == other.packing;
  }
  return *packing == *other.packing;
}

std::string to_string(const TensorDesc& desc) {
  std::string text{name_of(desc.type)};
  text += to_string(desc.shape) + " ";
  if (desc.layout == Layout::packed && desc.packing != nullptr) {
    return text + std::string(desc.packing->backend) + ":" + desc.packing->tag;
  }
  text += name_of(desc.layout);
  return desc.pitch == 0 ? text : text + " pitch " + std::to_string(desc.pitch);
}

TensorDesc plain(const TensorDesc& desc) {
  TensorDesc result;
  result.shape = desc.shape;
  const bool real = desc.type != DataType::i32 && desc.type != DataType::u8;
  result.type = real ? DataType::f32 : desc.type;
  return result;
}

BFloat16 to_bf16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if (std::isnan(value)) {
    // Quiet NaN, never rounded to infinity.
    return {static_cast<std::uint16_t>((bits >> 16) | 0x40)};
  }
  const std::uint32_t round = 0x7fff + ((bits >> 16) & 1);
  return {static_cast<std::uint16_t>((bits + round) >> 16)};
}

float to_float(BFloat16 value) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(value.bits) << 16);
}

// 1 bit of sign, 5 of exponent (bias 15; an f32 has 127), 10 of mantissa (an f32 has 23).
Float16 to_f16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = bits & 0x80000000U;
  const std::uint32_t magnitude = bits ^ sign;
  const auto absolute = std::bit_cast<float>(magnitude);
  std::uint32_t result = 0;
  if (std::isnan(value)) {
    result = 0x7E00;
  } else if (absolute >= 65520.0F) {  // midpoint of the largest number and its successor
    result = 0x7C00;
  } else if (absolute < 0x1p-14F) {  // below the smallest normal number: multiples of 2^-24
    result = static_cast<std::uint32_t>(std::nearbyint(absolute * 0x1p24F));
  } else {
    const std::uint32_t rebiased = magnitude - (112U << 23U);
    result = (rebiased + 0xFFFU + (rebiased >> 13U & 1U)) >> 13U;
  }
  return {static_cast<std::uint16_t>(result | sign >> 16U)};
}

float to_float(Float16 value) {
  const std::uint32_t sign = (value.bits & 0x8000U) << 16U;
  const std::uint32_t exponent = value.bits >> 10U & 0x1FU;
  const std::uint32_t mantissa = value.bits & 0x3FFU;
  if (exponent == 0) {
    return std::copysign(static_cast<float>(mantissa) * 0x1p-24F, std::bit_cast<float>(sign));
  }
  const std::uint32_t rebiased = exponent == 0x1F ? 0xFFU : exponent + 112U;
  return std::bit_cast<float>(sign | rebiased << 23U | mantissa << 13U);
}

}  // namespace cnn
