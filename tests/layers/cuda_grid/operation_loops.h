#pragma once

#include <span>

#include "layers/cuda/operation_graph.h"

namespace cnn::tests {

// Computes a graph of operations by reference loops, one operation after another, with virtual
// tensors in f32. addresses: those of the graph's tensors in memory, in their order.
void run_by_loops(const layers::cuda::OperationGraph& graph, std::span<void* const> addresses);

}  // namespace cnn::tests
