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

// The window of ResNet's and GoogLeNet's first convolution on images of an even size.
inline layers::Window first_window() {
  return {.kernel_h = 7,
          .kernel_w = 7,
          .stride_h = 2,
          .stride_w = 2,
          .pad_top = 2,
          .pad_bottom = 3,
          .pad_left = 2,
          .pad_right = 3};
}

// A row of seven, with a stride of the rows alone.
inline layers::Window row_of_seven() {
  return {.kernel_h = 1, .kernel_w = 7, .stride_h = 2, .pad_left = 3, .pad_right = 3};
}

// Three by three with a stride, as TensorFlow pads it on images of an even size.
inline layers::Window padded_after() {
  return {
      .kernel_h = 3, .kernel_w = 3, .stride_h = 2, .stride_w = 2, .pad_bottom = 1, .pad_right = 1};
}

}  // namespace cnn::tests
