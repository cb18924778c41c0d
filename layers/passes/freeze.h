#pragma once

#include "layers/passes/prologue.h"
#include "runtime/graph.h"

namespace cnn::layers {

// Constant folding for inference graphs with settled layouts: moves every node that depends only on
// saved variables that no node mutates to a prologue. Such nodes fold batch norms into weights, or
// pack and narrow weights.
PrologueSplit freeze_constants(const Graph& graph);

}  // namespace cnn::layers
