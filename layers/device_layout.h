#pragma once

#include <cstddef>

#include "runtime/kernel.h"
#include "runtime/tensor.h"

// How operands lie on a GPU: what its kernels ask for, and what a simulated one assumes.
namespace cnn::layers {

class Update;

// Engines of the libraries, and some kernels of ours, count elements in 32 bits. Throws Error of a
// tensor with more, the gaps between its pixels included.
void require_indexable(const TensorDesc& desc);

// Every operand as a device keeps it: what has four dimensions with channels innermost and no gaps
// between pixels, all else row-major. Types stay as asked. Throws Error on more elements than
// kernels count.
KernelSpec in_nhwc(const Signature& asked, std::size_t workspace = 0);

// For operands that a kernel also takes with other channels between pixels: as asked, where every
// pixel begins at a multiple of 16 bytes, as without them.
void keep_pitch(TensorDesc& answer, const TensorDesc& asked);

// A parameter's gradient, slots and copy lie as it does; copies keep their type.
KernelSpec like_parameters(const Update& op, const Signature& asked);

}  // namespace cnn::layers
