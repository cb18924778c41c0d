#include "tests/support/cuda/runtime/values.h"

#include <bit>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <vector>

#include "runtime/error.h"

namespace cnn::tests::emulated {
namespace {

// Returns a table of all f16 values, because the host's conversion of one takes longer than the
// arithmetic with it.
const std::vector<float>& all_f16_values() {
  static const std::vector<float> all = [] {
    std::vector<float> values(std::size_t{1} << 16U);
    for (std::size_t bits = 0; bits < values.size(); ++bits) {
      values[bits] = __half2float(std::bit_cast<__half>(static_cast<std::uint16_t>(bits)));
    }
    return values;
  }();
  return all;
}

template <class Real, class Value>
void fill_row(std::span<Real> to, std::int64_t first, std::int64_t step, const Value& value) {
  for (Real& element : to) {
    element = value(first);
    first += step;
  }
}

}  // namespace

std::size_t bytes_of(DataType type) { return type == DataType::f32 ? 4 : 2; }

float load(DataType type, const void* data, std::int64_t index) {
  switch (type) {
    case DataType::f32:
      return static_cast<const float*>(data)[index];
    case DataType::f16:
      return __half2float(static_cast<const __half*>(data)[index]);
    case DataType::bf16:
      return __bfloat162float(static_cast<const __nv_bfloat16*>(data)[index]);
    default:
      throw Error("the emulated libraries have no type but f32, f16 and bf16");
  }
}

void store(DataType type, void* data, std::int64_t index, float value) {
  switch (type) {
    case DataType::f32:
      static_cast<float*>(data)[index] = value;
      return;
    case DataType::f16:
      static_cast<__half*>(data)[index] = __float2half_rn(value);
      return;
    case DataType::bf16:
      static_cast<__nv_bfloat16*>(data)[index] = __float2bfloat16_rn(value);
      return;
    default:
      throw Error("the emulated libraries have no type but f32, f16 and bf16");
  }
}

template <class Real>
void load_row(DataType type, const void* data, std::int64_t first, std::int64_t step,
              std::span<Real> to) {
  switch (type) {
    case DataType::f32:
      return fill_row(to, first, step,
                      [from = static_cast<const float*>(data)](std::int64_t i) { return from[i]; });
    case DataType::f16:
      return fill_row(
          to, first, step,
          [from = static_cast<const std::uint16_t*>(data),
           values = all_f16_values().data()](std::int64_t i) { return values[from[i]]; });
    default:
      return fill_row(to, first, step, [=](std::int64_t i) { return load(type, data, i); });
  }
}

template void load_row(DataType type, const void* data, std::int64_t first, std::int64_t step,
                       std::span<float> to);
template void load_row(DataType type, const void* data, std::int64_t first, std::int64_t step,
                       std::span<double> to);

float to_tf32(float value) {
  constexpr std::uint32_t dropped = 13;
  constexpr std::uint32_t infinity = 0x7F800000U;
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if ((bits & infinity) == infinity) {
    return value;
  }
  const std::uint32_t half = (1U << (dropped - 1)) - 1 + (bits >> dropped & 1U);
  return std::bit_cast<float>((bits + half) & ~((1U << dropped) - 1));
}

}  // namespace cnn::tests::emulated
