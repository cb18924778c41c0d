#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <ostream>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/graph.h"

namespace cnn::tests {

// The purpose of an op case. small: few enough elements for central differences. heavy: a layer of
// a real network, in the slow suites only.
enum class Weight : std::uint8_t { small, medium, heavy };

// One small graph. All tests of kernels, gradients and plans run over all cases.
struct Case {
  std::string name;
  // Adds the forward nodes. Returns the tensor whose gradient is taken; nothing: none is.
  std::function<std::optional<Value>(Graph&)> build;
  Weight weight = Weight::small;
  double tolerance = 2e-5;  // of f32, see difference()
  // bf16 results may differ by a unit in the last place, 2^-8 to 2^-7 of the value.
  double bf16_tolerance = 0.01;
  bool training = true;
};

std::vector<Case> all_cases();

// One function per file; rows of all_cases().
std::vector<Case> conv_cases();
std::vector<Case> network_cases();  // layers of the real networks, and blocks of several layers
std::vector<Case> pool_cases();
std::vector<Case> batch_norm_cases();
std::vector<Case> fused_cases();  // convolutions with parts of batch norms, and the other parts
std::vector<Case> elementwise_cases();  // activations, joins, conversions, concat, dropout
std::vector<Case> dense_cases();
std::vector<Case> loss_cases();
std::vector<Case> optimizer_cases();

// An input of the graph called `name`, of the type that the graph computes in.
Value image(Graph& graph, std::string name, Shape shape);

// A case's graph with its gradients: of sum(y * dy), dy an input, by every parameter and real
// input.
struct BuiltCase {
  std::unique_ptr<Graph> graph;
  std::optional<Value> y, dy;
  std::vector<Value> wrt;
  std::vector<std::optional<Value>> gradients;  // of each wrt
};
BuiltCase build(const Case& row, DataType compute);

// Names of the rows, for parameterised tests.
std::ostream& operator<<(std::ostream& out, const Case& row);

}  // namespace cnn::tests
