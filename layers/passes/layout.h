#pragma once

#include "runtime/graph.h"
#include "runtime/kernel.h"

namespace cnn::layers {

// The layout of images inside a network whose kernels like `preferred`: blocks of 16 channels only
// where they would not be mostly padding, as with DenseNet's growth of 12.
Layout image_layout(const Graph& graph, Layout preferred);

// Gives every tensor a layout, from what the kernels of the table want when images lie in `image`,
// and puts Convert nodes at the seams (of layout, packing and type; one per tensor and target).
// Parameters take the packing of their gradient, so that the update needs no conversion, or in a
// graph without gradients that of their first reader; slots follow their parameter. A parameter or
// state found in `fixed` (by name) keeps the description it has there: an evaluation graph takes
// the layouts of the training variables as given.
Rewritten assign_layouts(const Graph& graph, const KernelTable& table, Layout image,
                         std::span<const TensorInfo> fixed = {});

}  // namespace cnn::layers
