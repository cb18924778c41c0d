#pragma once

#include <span>

#include "layers/cuda/operation_graph.h"

namespace cnn::tests {

// Computes a graph of operations by plain loops, one operation after the other, inner tensors in
// f32. addresses: of its tensors in memory, in their order.
void run_by_loops(const layers::cuda::OperationGraph& graph, std::span<void* const> addresses);

}  // namespace cnn::tests
