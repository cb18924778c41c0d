#include "runtime/active_bytes.h"

#include <algorithm>

#include "runtime/access.h"
#include "runtime/memory_plan.h"

namespace cnn {
namespace {

// Returns whether an output may take over the bytes of an input; `taken` marks inputs already used.
bool takes_over(const Graph& graph, const Node& node, std::size_t output,
                std::vector<bool>& taken) {
  for (std::size_t i = 0; i < node.inputs.size(); ++i) {
    if (!taken[i] && !is_persistent(graph.info(node.inputs[i]).role) &&
        may_reuse_in_place(graph, node, i, output)) {
      taken[i] = true;
      return true;
    }
  }
  return false;
}

}  // namespace

std::size_t active_bytes(const Graph& graph, const Node& node, std::size_t workspace) {
  std::vector<TensorId> there;
  const auto add = [&](TensorId tensor) {
    const TensorId root = graph.root_of(tensor);
    if (!is_persistent(graph.info(root).role) &&
        std::find(there.begin(), there.end(), root) == there.end()) {
      there.push_back(root);
    }
  };
  std::for_each(node.inputs.begin(), node.inputs.end(), add);
  std::vector<bool> taken(node.inputs.size());
  for (std::size_t k = 0; k < node.outputs.size(); ++k) {
    if (!takes_over(graph, node, k, taken)) {
      add(node.outputs[k]);
    }
  }
  std::size_t bytes = aligned(workspace);
  for (const TensorId tensor : there) {
    bytes += aligned(graph.info(tensor).desc.bytes());
  }
  return bytes;
}

std::vector<ActiveSet> largest_nodes(const Graph& graph, std::span<const std::size_t> workspace,
                                     std::size_t count) {
  std::vector<ActiveSet> result;
  for (std::size_t i = 0; i < graph.nodes().size(); ++i) {
    result.push_back({.node = NodeId{static_cast<std::uint32_t>(i)},
                      .bytes = active_bytes(graph, graph.nodes()[i], workspace[i])});
  }
  std::stable_sort(result.begin(), result.end(),
                   [](const ActiveSet& a, const ActiveSet& b) { return a.bytes > b.bytes; });
  result.resize(std::min(count, result.size()));
  return result;
}

std::size_t min_feasible_bytes(const Graph& graph, std::span<const std::size_t> workspace) {
  const std::vector<ActiveSet> largest = largest_nodes(graph, workspace, 1);
  return largest.empty() ? 0 : largest.front().bytes;
}

}  // namespace cnn
