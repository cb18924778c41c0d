#pragma once

#include <string>

#include "runtime/graph.h"

namespace cnn::bench {

// Returns the graph in Graphviz's language (dot -Tsvg): one box for each node with its kind,
// outputs and their descriptions; arrows for tensors. Inputs are ovals; parameters and state are
// listed inside the boxes, since their arrows would hide the network.
std::string graph_dot(const Graph& graph);

}  // namespace cnn::bench
