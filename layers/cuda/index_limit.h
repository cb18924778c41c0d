#pragma once

#include <cstdint>
#include <limits>
#include <string>

#include "runtime/error.h"
#include "runtime/tensor.h"

namespace cnn::layers::cuda {

// Engines of the libraries, and some kernels of ours, count elements in 32 bits. Throws Error of a
// tensor with more, the gaps between its pixels included.
inline void require_indexable(const TensorDesc& desc) {
  constexpr std::int64_t most = std::numeric_limits<std::int32_t>::max();
  const std::int64_t last = desc.pitch > 0 && desc.shape.rank() == 4
                                ? desc.shape[0] * desc.shape[2] * desc.shape[3] * desc.pitch
                                : desc.shape.elements();
  if (last > most) {
    throw Error("a tensor " + to_string(desc) + " has " + std::to_string(last) +
                " elements, but the CUDA backend takes at most " + std::to_string(most) +
                ": make the batch or the image smaller");
  }
}

}  // namespace cnn::layers::cuda
