#pragma once

#include <cstddef>

#include "runtime/tensor.h"

// The sign mask of a ReLU: one bit for each element that says whether the ReLU let it pass. The
// gradient needs nothing else of the output, and the mask takes a sixteenth of the bytes of an
// output of 16-bit elements.
namespace cnn::layers {

// Returns the mask of an image [N,C,H,W]: u8 [N, ceil(C / 8), H, W], in which bit c % 8 of byte c /
// 8 is set where the image is above 0 or NaN. The unused bits of the last byte are zero.
TensorDesc relu_mask_of(const Shape& image);

// The definitions, over row-major operands. `element` counts as the image lies.
void set_relu_mask(const TensorView& image, const TensorView& mask);
bool is_gate_open(const TensorView& mask, const Shape& image, std::size_t element);

}  // namespace cnn::layers
