#pragma once

#include <cstddef>
#include <cstdint>

#include "runtime/device.h"

namespace cnn::cuda::tests {

// Computes data[i] = data[i] * factor + 1.
void scale_and_add_one(Stream& stream, std::int32_t* data, int count, std::int32_t factor);

// Reverses the elements of one block by way of its shared memory. `spare_bytes` of shared memory
// before them stay unused.
void reverse(Stream& stream, float* data, int count, std::size_t spare_bytes);
void reverse(Stream& stream, double* data, int count, std::size_t spare_bytes);

// Keeps the stream busy for about `clocks` clock cycles of the device.
void spin(Stream& stream, std::int64_t clocks);

}  // namespace cnn::cuda::tests
