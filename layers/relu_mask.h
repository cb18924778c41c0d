#pragma once

#include <cstddef>

#include "runtime/tensor.h"

// The sign mask of a ReLU: one bit for each element, set if the ReLU let it pass. The gradient
// needs only this mask of the output, and the mask takes a sixteenth of the bytes of a 16-bit
// output, or a thirty-second of those of an f32 output.
namespace cnn::layers {

// Returns the mask of an image [N,C,H,W]: u8 [N, ceil(C / 8), H, W], in which bit c % 8 of byte c /
// 8 is set where the image is above 0 or NaN. The unused bits of the last byte are zero.
TensorDesc relu_mask_of(const Shape& image);

// Reference implementations over row-major operands. `element` is an index in the image's memory.
void set_relu_mask(const TensorView& image, const TensorView& mask);
bool is_gate_open(const TensorView& mask, const Shape& image, std::size_t element);

}  // namespace cnn::layers
