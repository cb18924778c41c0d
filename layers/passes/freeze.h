#pragma once

#include "layers/passes/prologue.h"
#include "runtime/graph.h"

namespace cnn::layers {

// Takes out of an inference graph whose layouts are settled every node that depends on nothing but
// the variables of checkpoints: folded batch norms, packed and narrowed weights.
Divided freeze_constants(const Graph& graph);

}  // namespace cnn::layers
