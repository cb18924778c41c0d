#pragma once

#include <cstddef>
#include <cstdint>

#include "layers/passes/slice_batch.h"
#include "runtime/graph.h"
#include "runtime/kernel.h"

namespace cnn::layers {

// Returns whether a training graph has a batch norm, and the table has kernels for its parts (see
// sliced_norm.h) wherever it has them for the whole norm.
bool can_slice_norms(const Graph& graph, const KernelTable& table, Layout image);

// Returns how a forward graph with batch norms in training would compute in so many slices.
Slicing norm_slicing_of(const Graph& forward, std::int64_t slices);

// Returns a training graph, with gradients and without masks of ReLUs, whose operations on images
// compute in slices of the batch; slices differ by at most one image. A batch norm needs sums over
// all slices, in the forward and in the backward pass: between two of them, all operations run on
// one slice, then on the next one, and each such round takes the slices in the opposite order of
// the round before, so that it begins with those that are still in memory. Sums for a norm are
// merged in the order of the slices, whatever the order of the rounds. Every slice is a tensor of
// its own; gradients of parameters are sums over slices. Throws Error if there are more slices than
// images.
Rewritten slice_norms(const Graph& graph, std::int64_t slices);

}  // namespace cnn::layers
