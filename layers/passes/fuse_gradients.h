#pragma once

#include <cstddef>
#include <limits>

#include "runtime/graph.h"
#include "runtime/kernel.h"

namespace cnn::layers {

// Training graphs, once gradients are there: an Add of two gradients that only a BatchNormBackward
// reads becomes part of it. A sum of more than two stays: to take but the last of them in would
// save nothing. So does one of more than `largest` bytes: a norm that adds holds one image more
// than one which gets the sum in the place of a gradient. The same values, in f32 the same bits.
inline constexpr std::size_t any_size = std::numeric_limits<std::size_t>::max();
Rewritten join_gradients(const Graph& graph, std::size_t largest = any_size);

// After fuse_convolutions, which knows nothing of masks: where the table has kernels for it (asked
// with images laid out as `image`), a BatchNorm or ScaleBias whose output opens the gate of a
// BatchNormBackward also makes a mask of it, see relu_mask.h, and the gradient reads that. The same
// values.
Rewritten mask_gates(const Graph& graph, const KernelTable& table, Layout image);

}  // namespace cnn::layers
