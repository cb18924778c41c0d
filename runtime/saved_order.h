#pragma once

#include <span>

#include "runtime/graph.h"
#include "runtime/tensor.h"

namespace cnn {

// The shape under which a checkpoint knows a variable, and its values in that order; plain ones are
// row-major in the order of the logical shape. Both spans have an entry for each element.
Shape saved_shape(const TensorInfo& info);
void to_saved_order(const TensorInfo& info, std::span<const float> plain, std::span<float> saved);
void from_saved_order(const TensorInfo& info, std::span<const float> saved, std::span<float> plain);

}  // namespace cnn
