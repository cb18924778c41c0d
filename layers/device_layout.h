#pragma once

#include <cstddef>

#include "runtime/kernel.h"
#include "runtime/tensor.h"

// Layouts of operands on a GPU: GPU kernels request them, and a simulated GPU assumes them.
namespace cnn::layers {

class Update;

// Library engines, and some of our kernels, count elements in 32 bits. Throws Error if the tensor
// has more elements, including the gaps of a pitch.
void require_indexable(const TensorDesc& desc);

// Returns a spec with every operand in the device's layout: rank-4 tensors in nhwc without gaps
// between pixels, all others row-major. Types stay as requested. Throws Error if a tensor has too
// many elements.
KernelSpec in_nhwc(const Signature& request, std::size_t workspace = 0);

// For operands that may have a pitch: copies the requested pitch to the answer if every pixel then
// begins at a multiple of 16 bytes, as it does without a pitch.
void keep_pitch(TensorDesc& answer, const TensorDesc& request);

// Returns a spec that gives a parameter's gradient, slots and copy the parameter's layout; copies
// keep their type.
KernelSpec like_parameters(const Update& op, const Signature& request);

}  // namespace cnn::layers
