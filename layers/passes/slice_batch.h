#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "runtime/graph.h"

namespace cnn::layers {

// How a step computes its batch.
struct Slicing {
  std::int64_t slices = 1;        // 1: the whole batch at once
  std::size_t sliceable = 0;      // nodes of the forward graph that can compute in slices
  std::size_t forward_nodes = 0;  // all of its nodes

  bool is_sliced() const { return slices > 1 && sliceable > 0; }
  // Slices lower the memory of a step only where most of its nodes compute in them.
  bool is_worthwhile() const { return 2 * sliceable > forward_nodes; }
};

// The last tensor up to which a forward graph can compute its images in slices: all nodes between
// the images and it treat each image alone, and nothing else of these nodes is read behind them.
// Nothing: there is none.
std::optional<TensorId> find_cut(const Graph& graph);

// Returns how the graph would compute with so many slices up to the cut.
Slicing slicing_of(const Graph& graph, std::optional<TensorId> cut, std::int64_t slices);

// The forward graph with the nodes up to `cut`, a result of find_cut(), repeated for each of so
// many slices of the batch, which differ by at most one image. All nodes of a slice stand before
// those of the next, so the gradient of a slice is complete before that of the one before it
// begins; a ConcatBatch joins the slices of `cut`. Every slice is a tensor of its own, which dies,
// moves or is recomputed alone; parameters are shared. The values are those of kernels that run on
// fewer images: gradients of parameters are sums of sums. At most one slice for each image.
Rewritten slice_batch(const Graph& graph, TensorId cut, std::int64_t slices);

}  // namespace cnn::layers
