#pragma once

#include "runtime/graph.h"

namespace cnn::layers {

// Operator fusion of forward graphs, before gradients are added. Fuses BatchNorm or
// BatchNormInference with a Relu or with an Add and a Relu behind it, and Conv2d, Dense or Add with
// a Relu, if no other node or output reads the intermediate value. A Relu with an upper limit is
// only fused with a BatchNorm.
Rewritten fuse_activations(const Graph& graph);

// Fuses an inference graph after fuse_activations(): a Conv2d with a BatchNormInference behind it
// becomes a FoldBatchNorm, which folds the norm into the weights, and a Conv2d with bias, residual
// and ReLU as its epilogue. An Add behind a Conv2d becomes its residual.
Rewritten fold_batch_norms(const Graph& graph);

}  // namespace cnn::layers
