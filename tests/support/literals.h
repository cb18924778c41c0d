#pragma once

#include <algorithm>
#include <span>
#include <vector>

#include "layers/operands.h"
#include "runtime/error.h"
#include "runtime/op.h"
#include "tests/support/host_tensor.h"

// Writes small tensors as literals and runs ops on them by their reference loops.
namespace cnn::tests {

template <class T>
constexpr DataType type_of = DataType::f32;
template <>
inline constexpr DataType type_of<std::int32_t> = DataType::i32;
template <>
inline constexpr DataType type_of<std::uint8_t> = DataType::u8;

// Returns a row-major tensor; T is float, int32 or uint8.
template <class T = float>
HostTensor tensor(const Shape& shape, const std::vector<T>& values) {
  HostTensor result(layers::described(shape, type_of<T>));
  check(result.view().as<T>().size() == values.size(), "a test's tensor has the wrong size");
  std::ranges::copy(values, result.view().as<T>().begin());
  return result;
}

// Returns an image of one channel with the rows 1 2 3, 4 5 6 and 7 8 9.
inline HostTensor nine() { return tensor({1, 1, 3, 3}, {1, 2, 3, 4, 5, 6, 7, 8, 9}); }

inline std::span<const float> floats(const HostTensor& t) { return t.view().as<float>(); }

// Returns the outputs of an op on plain tensors.
template <class... Tensors>
std::vector<HostTensor> run(const Op& op, const Tensors&... tensors) {
  const std::vector<TensorView> in{tensors.view()...};
  std::vector<TensorDesc> descs;
  descs.reserve(in.size());
  for (const TensorView& view : in) {
    descs.push_back(view.desc);
  }
  std::vector<HostTensor> out;
  std::vector<TensorView> views;
  for (const TensorDesc& desc : op.infer(descs)) {
    out.emplace_back(desc);
    views.push_back(out.back().view());
  }
  op.reference(in, views);
  return out;
}

}  // namespace cnn::tests
