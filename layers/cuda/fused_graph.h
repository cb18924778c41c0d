#pragma once

#include <string>

#include "layers/cuda/conv_graph.h"
#include "layers/cuda/operation_graph.h"

namespace cnn::layers::cuda {

// A convolution and the parts of batch norms around it that a library runs with it, as one graph.
struct FusedGraph {
  ConvGraph conv;           // without bias and ReLU
  bool prologue = false;    // forward and backward_weights: relu(a x + b) in the place of x
  bool statistics = false;  // forward: sums of y and of its squares
  // backward_data: multiplies by the derivative of the ReLU after the batch norm of x, and sums for
  // that norm's gradient.
  bool norm = false;
};

// Returns a key that is equal for equal graphs.
std::string key_of(const FusedGraph& graph);

// Returns the operation graph. Its tensors in memory are, in this order: x, w, y; with a prologue a
// and b [C] of the type of x; with statistics sum and squares f32 [O]; with a norm mean, 1 /
// deviation, gamma and beta, then g (like x), then dgamma, dbeta and the coefficients A, B and C of
// d loss / d x = A g + B x + C, all but g f32 [C].
OperationGraph operations_of(const FusedGraph& graph);

}  // namespace cnn::layers::cuda
