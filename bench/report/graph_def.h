#pragma once

#include <cstddef>
#include <vector>

#include "runtime/graph.h"

namespace cnn::bench {

// Returns the graph of a step as TensorFlow's GraphDef message, for TensorBoard: a node for each
// operation, variable and input, with the shapes and types of its outputs.
std::vector<std::byte> graph_def(const Graph& graph);

}  // namespace cnn::bench
