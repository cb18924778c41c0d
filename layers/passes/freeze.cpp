#include "layers/passes/freeze.h"

#include <algorithm>
#include <vector>

#include "runtime/access.h"

namespace cnn::layers {
namespace {

std::vector<bool> find_mutated(const Graph& graph) {  // by TensorId
  std::vector<bool> mutated(graph.tensors().size());
  for (const Node& node : graph.nodes()) {
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      mutated[index_of(node.inputs[i])] = mutated[index_of(node.inputs[i])] || node.op->mutates(i);
    }
  }
  return mutated;
}

}  // namespace

PrologueSplit freeze_constants(const Graph& graph) {
  const std::vector<bool> mutated = find_mutated(graph);
  std::vector<bool> constant(graph.tensors().size());
  for (std::size_t i = 0; i < constant.size(); ++i) {
    // Synthetic images are state too, but not saved. Nodes that depend on them are the work that
    // the benchmark times, so they stay in the step.
    const TensorInfo& info = graph.tensors()[i];
    constant[i] = info.saved && is_persistent(info.role) && !mutated[i];
  }
  const auto is_constant = [&](TensorId id) { return constant[index_of(id)]; };
  const auto is_mutated = [&](TensorId id) { return mutated[index_of(id)]; };
  std::vector<bool> taken;
  for (const Node& node : graph.nodes()) {
    const bool all = !node.inputs.empty() && std::ranges::all_of(node.inputs, is_constant) &&
                     std::ranges::none_of(node.outputs, is_mutated);
    for (const TensorId output : node.outputs) {
      constant[index_of(output)] = all;
    }
    taken.push_back(all);
  }
  return split_prologue(graph, taken);
}

}  // namespace cnn::layers
