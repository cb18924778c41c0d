#include "layers/passes/commute_relu_pool.h"

#include <cstddef>
#include <optional>
#include <vector>

#include "layers/activation.h"
#include "layers/passes/rewriter.h"
#include "layers/pool.h"

namespace cnn::layers {
namespace {

struct PooledGate {
  NodeId pool_backward{};
  TensorId pooled{};  // the output of the forward pool
};

const Node& node_of(const Graph& graph, NodeId id) { return graph.nodes()[index_of(id)]; }

// Returns the max pool that reads the ReLU whose gradient this node gates, if the pool is the only
// source of that gradient.
std::optional<PooledGate> pooled_gate(const Graph& graph, const std::vector<std::size_t>& readers,
                                      const Node& node) {
  const auto* relu = as<ReluBackward>(node);
  const std::optional<NodeId> made_by =
      relu != nullptr ? graph.producer(node.inputs[0]) : std::nullopt;
  if (!made_by || readers[index_of(node.inputs[0])] != 1 ||
      as<MaxPoolBackward>(node_of(graph, *made_by)) == nullptr) {
    return std::nullopt;
  }
  const std::optional<NodeId> pool = graph.producer(node_of(graph, *made_by).inputs[1]);
  if (!pool || as<MaxPool>(node_of(graph, *pool)) == nullptr ||
      node_of(graph, *pool).inputs[0] != node.inputs[1]) {
    return std::nullopt;
  }
  return PooledGate{.pool_backward = *made_by, .pooled = node_of(graph, *pool).outputs[0]};
}

// Appends the gate, then the gradient of the pool, whose output replaces that of the gate in the
// old graph.
void emit_gated(Rewriter& rewriter, const Node& gate, const Node& pool, TensorId pooled) {
  Graph& graph = rewriter.graph();
  const Value dy{&graph, rewriter.now(pool.inputs[0])};
  const Value y{&graph, rewriter.now(pooled)};
  const Value indices{&graph, rewriter.now(pool.inputs[1])};
  const Value g = emit(*as<ReluBackward>(gate), {dy, y});
  rewriter.moved(gate.outputs[0], emit(*as<MaxPoolBackward>(pool), {g, indices}).id);
}

}  // namespace

Rewritten commute_relu_pool(const Graph& graph) {
  const std::vector<std::size_t> readers = count_readers(graph);
  std::vector<std::optional<PooledGate>> gates;
  std::vector<bool> absorbed(graph.nodes().size());
  for (const Node& node : graph.nodes()) {
    gates.push_back(pooled_gate(graph, readers, node));
    if (gates.back()) {
      absorbed[index_of(gates.back()->pool_backward)] = true;
    }
  }
  Rewriter rewriter(graph);
  for (std::size_t i = 0; i < graph.nodes().size(); ++i) {
    const Node& node = graph.nodes()[i];
    if (gates[i]) {
      emit_gated(rewriter, node, node_of(graph, gates[i]->pool_backward), gates[i]->pooled);
    } else if (!absorbed[i]) {
      rewriter.copy(node);
    }
  }
  return rewriter.finish();
}

}  // namespace cnn::layers
