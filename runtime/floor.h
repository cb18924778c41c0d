#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "runtime/graph.h"

// The memory that a step needs at any moment, however tensors come and go between its nodes.
namespace cnn {

// Bytes of the arena that a node takes while it runs: its operands that do not survive the step,
// aligned, and `workspace`. Tensors that lie inside another count as the whole of that one, once;
// an output that may take the place of an input (may_take_over) counts with it.
std::size_t active_bytes(const Graph& graph, const Node& node, std::size_t workspace);

struct ActiveSet {
  NodeId node{};
  std::size_t bytes = 0;
};

// The `count` nodes that take most, the largest first. workspace: bytes by NodeId.
std::vector<ActiveSet> largest_nodes(const Graph& graph, std::span<const std::size_t> workspace,
                                     std::size_t count);

// The arena that no swapping and no recomputation can go below: what the largest node takes. The
// variables come on top of it.
std::size_t floor_bytes(const Graph& graph, std::span<const std::size_t> workspace);

}  // namespace cnn
