#pragma once

#include <cstdint>
#include <optional>

#include "runtime/graph.h"

namespace cnn::layers {

// Returns the last tensor up to which a forward graph can compute its images in slices along their
// rows: every row of a tensor between the images and this one depends on a window of rows, and
// later nodes read no other tensor of these nodes. Means over all pixels, flattened images, norms
// in training and dropout stand behind it. Returns nothing if there is no such tensor.
std::optional<TensorId> find_row_cut(const Graph& graph);

// Returns how many nodes compute `cut`, a result of find_row_cut(), from the images.
std::size_t nodes_before_row_cut(const Graph& graph, TensorId cut);

// Returns the forward graph with the nodes up to `cut`, a result of find_row_cut(), repeated for
// each slice of its rows; slices differ by at most one row of `cut`. A slice begins with the rows
// of the images that its windows reach, and is independent of the others: rows near a seam are
// computed in both slices, as overlapped tiles do. The gradients of both add up to those of the
// whole, so no gradient passes from slice to slice. Windows are padded only where they leave the
// image. All nodes of a slice precede those of the next one, and a ConcatRows joins the slices of
// `cut`; its values are those of the whole image but for the algorithms that kernels choose by
// size. Throws Error if there are more slices than rows.
Rewritten slice_rows(const Graph& graph, TensorId cut, std::int64_t slices);

}  // namespace cnn::layers
