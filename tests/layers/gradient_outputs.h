#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "layers/passes/autodiff.h"
#include "runtime/graph.h"

namespace cnn::tests {

// The gradients of sum(y dy) by all parameters of the graph become its outputs.
inline void output_gradients(Graph& graph, Value y, Value dy) {
  std::vector<Value> parameters;
  for (std::uint32_t i = 0; i < graph.tensors().size(); ++i) {
    if (graph.tensors()[i].role == Role::parameter) {
      parameters.push_back({&graph, TensorId{i}});
    }
  }
  for (const auto& gradient : layers::gradients(y, parameters, dy)) {
    graph.output("gradient " + std::to_string(graph.outputs().size()), gradient.value());
  }
}

}  // namespace cnn::tests
