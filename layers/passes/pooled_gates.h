#pragma once

#include "runtime/graph.h"

namespace cnn::layers {

// Training graphs, once gradients are there: where a max pool reads what a ReLU made, and nothing
// else sends that a gradient, the gate of the ReLU moves to the other side of the pool. A gradient
// goes to the maximum of each window, which is open where the pooled value is: so the smaller image
// opens the gate, and the larger one is not kept for it. The same bits.
Rewritten gate_pooled_gradients(const Graph& graph);

}  // namespace cnn::layers
