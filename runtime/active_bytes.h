#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "runtime/graph.h"

// The working set of a node: the memory that a step needs while it runs the node, whatever is
// swapped or recomputed between nodes.
namespace cnn {

// Returns the bytes of the arena that a node takes while it runs: its operands that do not survive
// the step, aligned, and `workspace`. Tensors that lie inside another count as the whole of that
// one, once; an output that may take the place of an input (may_take_over) counts with it.
std::size_t active_bytes(const Graph& graph, const Node& node, std::size_t workspace);

struct ActiveSet {
  NodeId node{};
  std::size_t bytes = 0;
};

// Returns the `count` nodes with the largest working sets, the largest first. workspace: bytes by
// NodeId.
std::vector<ActiveSet> largest_nodes(const Graph& graph, std::span<const std::size_t> workspace,
                                     std::size_t count);

// Returns a lower bound of the arena of every plan, whatever it swaps and recomputes: the largest
// working set of a node. The variables are not in it.
std::size_t min_feasible_bytes(const Graph& graph, std::span<const std::size_t> workspace);

}  // namespace cnn
