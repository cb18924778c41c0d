#pragma once

#include "runtime/graph.h"

namespace cnn::layers {

// Training graphs, once gradients are there: an Add of two gradients that only a BatchNormBackward
// reads becomes part of it. Of more than two, the sum stays: to take but the last of them in would
// save nothing. The same values, in f32 the same bits.
Rewritten join_gradients(const Graph& graph);

}  // namespace cnn::layers
