#pragma once

#include <cstdint>

#include "runtime/tensor.h"

namespace cnn::layers::cpu {

// The pixels of x [N,C,H,W] that the pixels of y [N,O,P,Q] read in a 1 x 1 convolution: pixel
// (p, q) reads pixel (p stride_h, q stride_w).
struct StridedPixels {
  const Shape &x, &y;
  std::int64_t stride_h = 1, stride_w = 1;

  // Returns the number of the pixel of x that pixel number `pixel` of y reads, both counted over
  // all images.
  std::int64_t operator()(std::int64_t pixel) const {
    if (stride_h == 1 && stride_w == 1) {
      return pixel;
    }
    const std::int64_t line = pixel / y[3], column = pixel % y[3];
    const std::int64_t image = line / y[2], row = line % y[2];
    return (image * x[2] + row * stride_h) * x[3] + column * stride_w;
  }
};

}  // namespace cnn::layers::cpu
