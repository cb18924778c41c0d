#include "tests/layers/cases.h"

#include "layers/operands.h"
#include "layers/passes/autodiff.h"

namespace cnn::tests {

std::vector<Case> all_cases() {
  std::vector<Case> result;
  for (const auto rows : {conv_cases, network_cases, pool_cases, batch_norm_cases, fused_cases,
                          elementwise_cases, dense_cases, loss_cases, optimizer_cases}) {
    for (Case& row : rows()) {
      result.push_back(std::move(row));
    }
  }
  return result;
}

Value image(Graph& graph, std::string name, Shape shape) {
  return graph.input(std::move(name), layers::described(shape, graph.traits().compute));
}

BuiltCase build(const Case& row, DataType compute) {
  BuiltCase result;
  result.graph = std::make_unique<Graph>(Traits{.training = row.training, .compute = compute});
  Graph& graph = *result.graph;
  result.y = row.build(graph);
  if (!result.y) {
    return result;
  }
  for (std::size_t i = 0; i < graph.tensors().size(); ++i) {
    const TensorInfo& info = graph.tensors()[i];
    const bool real_input = info.role == Role::input && layers::is_real(info.desc.type);
    if (real_input || info.role == Role::parameter) {
      result.wrt.push_back({&graph, TensorId{static_cast<std::uint32_t>(i)}});
    }
  }
  result.dy = graph.input("dy", result.y->desc());
  result.gradients = layers::gradients(*result.y, result.wrt, *result.dy);
  return result;
}

std::ostream& operator<<(std::ostream& out, const Case& row) { return out << row.name; }

}  // namespace cnn::tests
