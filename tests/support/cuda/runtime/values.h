#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "runtime/tensor.h"

// Elements of tensors and matrices as the emulated libraries read and write them.
namespace cnn::tests::emulated {

std::size_t bytes_of(DataType type);

// Element `index` from `data` on. Stores round to nearest even.
float load(DataType type, const void* data, std::int64_t index);
void store(DataType type, void* data, std::int64_t index, float value);

// Elements first, first + step, ... from `data` on, as many as `to` has. Real is float or double.
template <class Real>
void load_row(DataType type, const void* data, std::int64_t first, std::int64_t step,
              std::span<Real> to);

// Rounds to the 10 bits of mantissa that tensor cores take of an f32.
float to_tf32(float value);

}  // namespace cnn::tests::emulated
