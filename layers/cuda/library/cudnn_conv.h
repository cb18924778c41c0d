#pragma once

#include "layers/cuda/conv_graph.h"
#include "layers/cuda/library/cudnn.h"

namespace cnn::layers::cuda {

// The convolution as cuDNN's operations. Its tensors in memory are x, w, then the bias if there is
// one, then y.
void build(const ConvGraph& graph, OperationGraph& into);

}  // namespace cnn::layers::cuda
