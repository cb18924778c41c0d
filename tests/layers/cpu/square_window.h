#pragma once

#include <cstdint>

#include "layers/window.h"

namespace cnn::tests {

// Returns a window with as many rows as columns, the same stride both ways and padding on all
// sides.
inline layers::Window square(std::int64_t kernel, std::int64_t stride, std::int64_t pad) {
  return {.kernel_h = kernel,
          .kernel_w = kernel,
          .stride_h = stride,
          .stride_w = stride,
          .pad_top = pad,
          .pad_bottom = pad,
          .pad_left = pad,
          .pad_right = pad};
}

}  // namespace cnn::tests
