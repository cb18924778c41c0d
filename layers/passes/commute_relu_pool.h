#pragma once

#include "runtime/graph.h"

namespace cnn::layers {

// Moves the gate of a ReLU in front of a max pool to the other side of the pool, in a training
// graph, if the pool is the only source of the gradient. The pool sends each gradient to the
// maximum of its window, whose sign is that of the pooled value. So the pooled image decides the
// gate, and the larger image need not be kept for it. Values stay bitwise the same.
Rewritten commute_relu_pool(const Graph& graph);

}  // namespace cnn::layers
