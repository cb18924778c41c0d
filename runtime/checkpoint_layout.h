#pragma once

#include <span>

#include "runtime/graph.h"
#include "runtime/tensor.h"

namespace cnn {

// The layout of a variable in a checkpoint, which may permute the axes of a kernel: see
// TensorInfo::saved_as. Plain values are row-major in the order of the logical shape.

// Returns the shape of the variable in a checkpoint.
Shape checkpoint_shape(const TensorInfo& info);
// Permutes values between the two layouts. Both spans have an entry for each element.
void to_checkpoint_layout(const TensorInfo& info, std::span<const float> plain,
                          std::span<float> saved);
void from_checkpoint_layout(const TensorInfo& info, std::span<const float> saved,
                            std::span<float> plain);

}  // namespace cnn
