#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "runtime/graph.h"

// The working set of a node: the memory that a step needs while it runs the node, whichever tensors
// the step swaps or recomputes between nodes.
namespace cnn {

// Returns the arena bytes that a node takes while it runs: its aligned operands that do not survive
// the step, and `workspace`. Tensors that lie inside another tensor count once, as the whole outer
// tensor; an output that may take over an input's bytes (may_reuse_in_place) counts together with
// it.
std::size_t active_bytes(const Graph& graph, const Node& node, std::size_t workspace);

struct ActiveSet {
  NodeId node{};
  std::size_t bytes = 0;
};

// Returns the `count` nodes with the largest working sets, the largest first. workspace: bytes by
// NodeId.
std::vector<ActiveSet> largest_nodes(const Graph& graph, std::span<const std::size_t> workspace,
                                     std::size_t count);

// Returns a lower bound of the arena of every plan, swapped and recomputed tensors included: the
// largest working set of a node. The bound excludes the variables.
std::size_t min_feasible_bytes(const Graph& graph, std::span<const std::size_t> workspace);

}  // namespace cnn
