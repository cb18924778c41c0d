#include "layers/freeze.h"

#include <utility>

namespace cnn::layers {
namespace {

// By TensorId: made of saved variables alone. Synthetic images are state too, but not saved: what
// depends on them is the work that is timed.
std::vector<bool> find_constants(const Graph& graph) {
  std::vector<bool> constant(graph.tensors().size());
  for (std::size_t i = 0; i < constant.size(); ++i) {
    const TensorInfo& info = graph.tensors()[i];
    constant[i] = info.saved && (info.role == Role::parameter || info.role == Role::state);
  }
  for (const Node& node : graph.nodes()) {
    bool all = !node.inputs.empty();
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      all = all && constant[index_of(node.inputs[i])] && !node.op->mutates(i);
    }
    for (const TensorId output : node.outputs) {
      constant[index_of(output)] = all;
    }
  }
  return constant;
}

bool makes_constants(const Node& node, const std::vector<bool>& constant) {
  return !node.outputs.empty() && constant[index_of(node.outputs.front())];
}

}  // namespace

Frozen freeze_constants(const Graph& graph) {
  const std::vector<bool> constant = find_constants(graph);
  Frozen frozen{.graph = std::make_shared<Graph>(graph.traits())};
  std::vector<TensorId> was(graph.tensors().size());
  for (std::size_t i = 0; i < was.size(); ++i) {
    TensorInfo info = graph.tensors()[i];
    if (info.role == Role::activation && constant[i]) {
      info.role = Role::state;
      info.name += ":" + std::to_string(i);  // several conversions of one tensor share a name
    }
    was[i] = frozen.graph->add_tensor(std::move(info));
  }
  const auto names = [&](const std::vector<TensorId>& ids) {
    std::vector<std::string> result;
    for (const TensorId id : ids) {
      result.push_back(frozen.graph->info(was[index_of(id)]).name);
    }
    return result;
  };
  for (const Node& node : graph.nodes()) {
    if (makes_constants(node, constant)) {
      frozen.preparations.push_back(
          {.op = node.op, .inputs = names(node.inputs), .outputs = names(node.outputs)});
      continue;
    }
    Node copy{.op = node.op};
    for (const TensorId id : node.inputs) {
      copy.inputs.push_back(was[index_of(id)]);
    }
    for (const TensorId id : node.outputs) {
      copy.outputs.push_back(was[index_of(id)]);
    }
    frozen.graph->add_node(std::move(copy));
  }
  for (const Output& output : graph.outputs()) {
    frozen.graph->output(output.name, {frozen.graph.get(), was[index_of(output.tensor)]});
  }
  return frozen;
}

}  // namespace cnn::layers
