#include "layers/fuse_gradients.h"

#include <cstddef>
#include <memory>
#include <optional>
#include <vector>

#include "layers/batch_norm.h"
#include "layers/elementwise.h"
#include "layers/rewriter.h"

namespace cnn::layers {
namespace {

// The Add of two that makes the gradient of this norm's output, for it alone.
std::optional<NodeId> own_sum(const Graph& graph, const std::vector<std::size_t>& readers,
                              const Node& node) {
  const auto* norm = as<BatchNormBackward>(node);
  if (norm == nullptr || norm->joined) {
    return std::nullopt;
  }
  const TensorId dy = node.inputs[norm->place_of_dy()];
  const std::optional<NodeId> made_by = graph.producer(dy);
  if (!made_by || readers[index_of(dy)] != 1) {
    return std::nullopt;
  }
  const Node& sum = graph.nodes()[index_of(*made_by)];
  const auto* add = as<Add>(sum);
  return add != nullptr && !add->relu && sum.inputs.size() == 2 ? made_by : std::nullopt;
}

void emit_joined(Rewriter& rewriter, const Node& node, const Node& sum) {
  const auto& norm = *as<BatchNormBackward>(node);
  std::vector<TensorId> inputs = node.inputs;
  const auto dy = inputs.begin() + static_cast<std::ptrdiff_t>(norm.place_of_dy());
  *dy = sum.inputs[0];
  inputs.insert(dy + 1, sum.inputs[1]);
  rewriter.copy(std::make_shared<const BatchNormBackward>(norm.attributes, true), inputs,
                node.outputs);
}

}  // namespace

Rewritten join_gradients(const Graph& graph) {
  const std::vector<std::size_t> readers = count_readers(graph);
  std::vector<std::optional<NodeId>> sums;
  std::vector<bool> absorbed(graph.nodes().size());
  for (const Node& node : graph.nodes()) {
    sums.push_back(own_sum(graph, readers, node));
    if (sums.back()) {
      absorbed[index_of(*sums.back())] = true;
    }
  }
  Rewriter rewriter(graph);
  for (std::size_t i = 0; i < graph.nodes().size(); ++i) {
    const Node& node = graph.nodes()[i];
    if (sums[i]) {
      emit_joined(rewriter, node, graph.nodes()[index_of(*sums[i])]);
    } else if (!absorbed[i]) {
      rewriter.copy(node);
    }
  }
  return rewriter.finish();
}

}  // namespace cnn::layers
