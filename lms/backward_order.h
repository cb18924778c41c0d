#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "runtime/graph.h"
#include "runtime/kernel.h"

namespace cnn::lms {

// Returns all nodes of a training graph in an order in which the backward pass keeps few bytes:
// nodes of parallel branches, which are the only ones that may change places, come in the order
// with the smallest active bytes in the fullest step, and of these in one with small active bytes
// over all steps. Active are the operands of a node, the gradients that later nodes need, and
// activations between two of their readers, which would have to leave and return there. The order
// is found exactly, by dynamic programming over the sets of nodes that may have run, separately for
// each part of the backward pass between two nodes through which all gradients pass; parts with too
// many nodes or such sets keep their order. The forward pass keeps its order too.
//
// Neither times nor the budget change the order, and values do not depend on it. first: index of
// the first node of the backward pass; specs: by NodeId.
std::vector<NodeId> backward_order(const Graph& graph, std::span<const KernelSpec> specs,
                                   std::size_t first);

}  // namespace cnn::lms
