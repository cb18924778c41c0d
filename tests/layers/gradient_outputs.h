#pragma once

#include <string>

#include "layers/passes/autodiff.h"
#include "runtime/graph.h"

namespace cnn::tests {

// Makes the gradients of sum(y dy) with respect to all parameters outputs of the graph.
inline void output_gradients(Graph& graph, Value y, Value dy) {
  for (const auto& gradient : layers::gradients(y, layers::parameters_of(graph), dy)) {
    graph.output("gradient " + std::to_string(graph.outputs().size()), gradient.value());
  }
}

}  // namespace cnn::tests
