#pragma once

#include "runtime/graph.h"
#include "runtime/kernel.h"

namespace cnn::layers {

// Returns the layout of images inside a network whose kernels prefer `preferred`. Returns nhwc
// instead of blocks of 16 channels if these would be mostly padding, as with DenseNet's growth of
// 12.
Layout image_layout(const Graph& graph, Layout preferred);

// Layout assignment: gives every tensor a layout, from the requirements of the table's kernels when
// images lie in layout `image`. Inserts a Convert wherever a kernel takes another layout, packing
// or type than the tensor has, one for each tensor and target. Parameters take the packing of their
// gradient, so that the update needs no conversion; in a graph without gradients they take that of
// their first reader. Optimizer slots follow their parameter. A parameter or state whose name is in
// `fixed` keeps the description given there: an evaluation graph shares the variables of training.
// Throws Error if the table has no kernel for an op or a conversion, or if `fixed` has another
// shape or type.
Rewritten assign_layouts(const Graph& graph, const KernelTable& table, Layout image,
                         std::span<const TensorInfo> fixed = {});

}  // namespace cnn::layers
