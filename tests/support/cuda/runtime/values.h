#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "runtime/tensor.h"

// Loads and stores elements of tensors and matrices for the emulated libraries.
namespace cnn::tests::emulated {

std::size_t bytes_of(DataType type);

// Load and store element `index` from `data` on. Stores round to nearest even.
float load(DataType type, const void* data, std::int64_t index);
void store(DataType type, void* data, std::int64_t index, float value);

// Loads elements first, first + step and so on until `to` is full. Real is float or double.
template <class Real>
void load_row(DataType type, const void* data, std::int64_t first, std::int64_t step,
              std::span<Real> to);

// Rounds to the 10 mantissa bits that tensor cores use of an f32.
float to_tf32(float value);

}  // namespace cnn::tests::emulated
