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

// The size of a case. small: few enough elements for central differences. heavy: a layer of a real
// network, which runs only in the slow suites.
enum class Weight : std::uint8_t { small, medium, heavy };

// A small graph with tolerances. The conformance, gradient and planning tests run over all cases.
struct Case {
  std::string name;
  // Adds the forward nodes. Returns the tensor to differentiate, or nothing if the case has no
  // gradient.
  std::function<std::optional<Value>(Graph&)> build;
  Weight weight = Weight::small;
  double tolerance = 2e-5;  // for f32, see difference()
  // bf16 results may differ by one unit in the last place, which is 2^-8 to 2^-7 of the value.
  double bf16_tolerance = 0.01;
  bool training = true;
};

std::vector<Case> all_cases();

// Each of these functions is in a file of its own; all_cases() joins their rows.
std::vector<Case> conv_cases();
std::vector<Case> network_cases();  // layers of the real networks, and blocks of several layers
std::vector<Case> pool_cases();
std::vector<Case> batch_norm_cases();
// Convolutions fused with parts of batch norms, and the remaining parts.
std::vector<Case> fused_cases();
std::vector<Case> elementwise_cases();  // activations, additions, conversions, concat, dropout
std::vector<Case> dense_cases();
std::vector<Case> loss_cases();
std::vector<Case> optimizer_cases();

// Adds a graph input called `name` of the graph's compute type.
Value image(Graph& graph, std::string name, Shape shape);

// A case's graph with gradients. They are those of sum(y * dy), where dy is an input, with respect
// to every parameter and every floating-point input.
struct BuiltCase {
  std::unique_ptr<Graph> graph;
  std::optional<Value> y, dy;
  std::vector<Value> wrt;
  std::vector<std::optional<Value>> gradients;  // one for each element of wrt
};
BuiltCase build(const Case& row, DataType compute);

// Prints a case's name for parameterised tests.
std::ostream& operator<<(std::ostream& out, const Case& row);

}  // namespace cnn::tests
