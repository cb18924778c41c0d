#pragma once

#include "layers/cpu/isa.h"
#include "runtime/kernel.h"

// Rows for TileConvolution. It takes the place of oneDNN's kernel where that takes the images as
// asked and weights in an order for tiles, so that the conversion of weights does not depend on the
// choice. They need AMX.
namespace cnn::layers::cpu {

// For data gradients of convolutions with a stride, where it is faster: oneDNN multiplies zeros.
void add_strided_tile_row(KernelTable& table, const Isa& isa);
// For convolutions and data gradients of every window.
void add_tile_conv_rows(KernelTable& table, const Isa& isa);

}  // namespace cnn::layers::cpu
