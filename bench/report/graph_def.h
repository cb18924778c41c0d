#pragma once

#include <cstddef>
#include <vector>

#include "runtime/graph.h"

namespace cnn::bench {

// The graph of a step as TensorFlow's message GraphDef, for TensorBoard: a node for each operation,
// variable and input, with the shapes and types of what it makes.
std::vector<std::byte> graph_def(const Graph& graph);

}  // namespace cnn::bench
