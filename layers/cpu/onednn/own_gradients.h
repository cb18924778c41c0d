#pragma once

#include <cstdint>

#include "layers/cpu/isa.h"
#include "runtime/kernel.h"

// Rows for the kernels of ours that compute weight gradients of convolutions. Each takes the place
// of oneDNN's kernel where that takes the images as asked and would leave the gradient in the same
// order, so that the parameter's packing does not depend on the choice.
namespace cnn::layers::cpu {

// For windows of 1 x 1 on f32 images of at least so many pixels. Needs AVX-512.
void add_pointwise_row(KernelTable& table, const Isa& isa, std::int64_t min_pixels);
// For first convolutions in f32. Needs AVX2.
void add_few_channels_row(KernelTable& table, const Isa& isa);
// For bf16 images in nchw16c, by products of vectors of pairs. Needs AVX-512 with bf16.
void add_bf16_gradient_row(KernelTable& table, const Isa& isa);
// For bf16 images in nhwc, by AMX.
void add_tile_gradient_row(KernelTable& table, const Isa& isa);
// For first convolutions of bf16 images in nhwc, by AMX.
void add_tile_lines_row(KernelTable& table, const Isa& isa);

}  // namespace cnn::layers::cpu
