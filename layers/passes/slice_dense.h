#pragma once

#include <cstddef>
#include <cstdint>

#include "layers/passes/host_variables.h"
#include "runtime/graph.h"

namespace cnn::layers {

struct SlicedDense {
  Rewritten rewritten;
  std::size_t weights = 0;  // how many of the choice belong to layers that compute in slices
};

// Returns a step, or a forward graph, whose dense layers compute in slices of their inputs x, and
// so of the rows of their weights w, where the weights are of this choice:
//   y = x0 w0 + x1 w1 + ...;  dw = [x0^T dy; x1^T dy; ...];  dx = [dy w0^T, dy w1^T, ...]
// The sums of y come in another order than without slices. Each slice of w and of dw is a tensor of
// its own: place_variables_on_host() loads slices of w and updates them one by one, so that neither
// w nor dw is ever whole on the device. A layer stays whole if other ops read its weights, or more
// than the update reads its gradient, or one slice would hold all of it. Layouts must not be
// assigned yet.
SlicedDense slice_dense(const Graph& graph, const IsOnHost& is_on_host, std::int64_t slices);

}  // namespace cnn::layers
