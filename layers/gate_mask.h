#pragma once

#include <cstddef>

#include "runtime/tensor.h"

// Where a ReLU let values pass, as one bit for each element: all that its gradient has to know of
// the output, a sixteenth of its bytes in 16 bits.
namespace cnn::layers {

// Returns the mask of an image [N,C,H,W]: u8 [N, ceil(C / 8), H, W], in which bit c % 8 of byte c /
// 8 is set where the image is above 0 or NaN. The unused bits of the last byte are zero.
TensorDesc gate_mask_of(const Shape& image);

// The definitions, over row-major operands. `element` counts as the image lies.
void set_gate_mask(const TensorView& image, const TensorView& mask);
bool is_gate_open(const TensorView& mask, const Shape& image, std::size_t element);

}  // namespace cnn::layers
