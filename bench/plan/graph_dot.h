#pragma once

#include <string>

#include "runtime/graph.h"

namespace cnn::bench {

// The graph in the language of Graphviz (dot -Tsvg): one box for each node with its kind, what it
// makes and how that looks; arrows for tensors. Inputs are ovals; parameters and state stand inside
// the boxes, since arrows from them would hide the network.
std::string graph_dot(const Graph& graph);

}  // namespace cnn::bench
