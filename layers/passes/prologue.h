#pragma once

#include <memory>
#include <vector>

#include "runtime/graph.h"

namespace cnn::layers {

// A graph cut in two: a prologue of nodes that need not run in every step, and the step without
// them. The tensors that the prologue makes for the step are of Role::derived and have the same
// names in both graphs. The prologue must run before the first step, and again whenever anything
// but the step writes the variables that it reads.
struct PrologueSplit {
  std::shared_ptr<Graph> step;
  std::shared_ptr<Graph> prologue;  // null if no node was taken
};

// Returns both parts of a graph with settled layouts. taken: by NodeId, whether the node belongs to
// the prologue. Nodes of the prologue may read only variables and outputs of other such nodes, and
// must mutate nothing. Throws Error if one reads a tensor that the step makes.
PrologueSplit split_prologue(const Graph& graph, const std::vector<bool>& taken);

}  // namespace cnn::layers
