#pragma once

#include <cstddef>
#include <limits>

#include "runtime/graph.h"
#include "runtime/kernel.h"

namespace cnn::layers {

// Fuses sums of gradients in a training graph: an Add of two gradients whose only reader is a
// BatchNormBackward becomes part of it. A sum of more than two stays an Add, because the norm could
// absorb only its last term, which saves nothing. A sum of more than `largest` bytes stays too: a
// norm that adds keeps both gradients alive, while an Add may overwrite one of them. Values stay
// the same, in f32 bitwise.
inline constexpr std::size_t any_size = std::numeric_limits<std::size_t>::max();
Rewritten fuse_gradient_adds(const Graph& graph, std::size_t largest = any_size);

// Replaces images that are kept only for the sign of a ReLU by masks of one bit per element, see
// relu_mask.h: a BatchNorm or ScaleBias whose output gates a BatchNormBackward also outputs its
// mask, and the gradient reads the mask. Rewrites only nodes for which the table has kernels when
// images lie in layout `image`. Follows fuse_convolutions(), which does not expect masks. Values
// stay the same.
Rewritten store_relu_masks(const Graph& graph, const KernelTable& table, Layout image);

}  // namespace cnn::layers
