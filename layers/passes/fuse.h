#pragma once

#include "runtime/graph.h"

namespace cnn::layers {

// Forward rewrites, before gradients are added: BatchNorm or BatchNormInference + Relu,
// + Add + Relu; Conv2d, Dense or Add + Relu. Only where the value in between has no other reader.
Rewritten fuse_activations(const Graph& graph);

// Inference only: Conv2d + BatchNormInference becomes FoldBatchNorm and a Conv2d with bias,
// residual and ReLU as its epilogue. After fuse_activations.
Rewritten fold_batch_norms(const Graph& graph);

}  // namespace cnn::layers
