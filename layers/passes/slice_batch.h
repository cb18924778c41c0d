#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "runtime/graph.h"

namespace cnn::layers {

// Describes how a step computes its batch.
struct Slicing {
  std::int64_t slices = 1;          // 1: the whole batch at once
  std::size_t sliceable = 0;        // nodes of the forward graph that can compute in slices
  std::size_t forward_nodes = 0;    // all of its nodes
  bool norms = false;               // batch norms in training compute in slices too
  std::int64_t row_slices = 1;      // wanted along the rows of images; 1: whole images at once
  std::size_t row_sliceable = 0;    // nodes of the forward graph that can compute rows of images
  std::int64_t rows = 1;            // of the last map that comes in slices: the most row slices
  std::int64_t dense_slices = 1;    // wanted of dense layers whose weights lie on the host
  std::size_t dense_sliceable = 0;  // how many weights on the host allow it

  bool is_sliced() const { return slices > 1 && sliceable > 0; }
  // Slices lower the memory of a step only where most of its nodes compute in them.
  bool is_worthwhile() const { return 2 * sliceable > forward_nodes; }
  std::int64_t row_slices_made() const { return std::min(row_slices, rows); }
  bool is_row_sliced() const { return row_slices_made() > 1; }
  bool rows_are_worthwhile() const { return 2 * row_sliceable > forward_nodes; }
  bool is_dense_sliced() const { return dense_slices > 1 && dense_sliceable > 0; }
};

// Returns the last tensor up to which a forward graph can compute its images in slices: every node
// between the images and this tensor computes each image by itself, and later nodes read no other
// tensor of these nodes. Returns nothing if there is no such tensor.
std::optional<TensorId> find_cut(const Graph& graph);

// Returns how the graph would compute with so many slices up to the cut.
Slicing slicing_of(const Graph& graph, std::optional<TensorId> cut, std::int64_t slices);

// Returns the forward graph with the nodes up to `cut`, a result of find_cut(), repeated for each
// slice of the batch; slices differ by at most one image. All nodes of a slice precede those of the
// next slice, so the backward pass completes one slice before it begins the one before it. A
// ConcatBatch joins the slices of `cut`. Every slice is a tensor of its own, which is freed,
// swapped or recomputed by itself; parameters are shared. Kernels run on fewer images, and
// gradients of parameters are sums over slices. Throws Error if there are more slices than images.
Rewritten slice_batch(const Graph& graph, TensorId cut, std::int64_t slices);

}  // namespace cnn::layers
