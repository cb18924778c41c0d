#pragma once

#include <map>
#include <string>
#include <vector>

#include "layers/operands.h"
#include "layers/passes/autodiff.h"
#include "runtime/graph.h"
#include "tests/support/interpreter.h"

// Reads ops, values and gradients of a graph, for tests of slices.
namespace cnn::tests {

// Returns the name of the op that makes a tensor.
inline std::string op_of(const Graph& graph, TensorId tensor) {
  return std::string(graph.nodes()[index_of(graph.producer(tensor).value())].op->name());
}

using Values = std::map<std::string, HostTensor>;

// Returns y and the gradients of sum(y dy) with respect to all parameters, by name.
inline Values values_of(Graph& graph, Value y) {
  const std::vector<Value> parameters = layers::parameters_of(graph);
  const auto made = layers::gradients(y, parameters, graph.input("dy", y.desc()));
  Interpreter values(graph);
  values.run();
  Values by_name;
  by_name.emplace("y", copy_of(values.view(y.id)));
  for (std::size_t i = 0; i < made.size(); ++i) {
    by_name.emplace(graph.info(parameters[i].id).name, copy_of(values.view(made[i].value().id)));
  }
  return by_name;
}

}  // namespace cnn::tests
