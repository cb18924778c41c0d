#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "runtime/graph.h"
#include "runtime/kernel.h"

namespace cnn::layers {

using NodeIndex = std::size_t;  // the index of a NodeId

// Copies a graph node by node into a new one, for graph passes. The constructor copies tensors that
// no node makes (parameters, state, inputs), in their order; `persistent`, by old TensorId, may
// replace their descriptions.
class Rewriter {
 public:
  explicit Rewriter(const Graph& old, std::span<const std::optional<TensorDesc>> persistent = {});

  const Graph& old() const { return old_; }
  TensorId now(TensorId old) const;  // its copy; throws Error if there is none yet
  // Appends `op` with the copies of old_inputs as inputs; its outputs become the copies of
  // old_outputs and keep their descriptions and names.
  void copy(std::shared_ptr<const Op> op, std::span<const TensorId> old_inputs,
            std::span<const TensorId> old_outputs);
  void copy(const Node& node) { copy(node.op, node.inputs, node.outputs); }
  // Declares a tensor of the new graph to be the copy of an old one.
  void moved(TensorId old, TensorId to) { was_[index_of(old)] = to; }
  Graph& graph() { return *graph_; }
  const Graph& graph() const { return *graph_; }
  // Copies the outputs of the graph and returns the result; the rewriter is then spent.
  Rewritten finish();

 private:
  const Graph& old_;
  std::shared_ptr<Graph> graph_;
  std::vector<std::optional<TensorId>> was_;
};

// Returns a copy of the graph.
Rewritten copy_of(const Graph& graph);

// Returns the op of a node if it is an O, else nullptr.
template <class O>
const O* as(const Node& node) {
  return dynamic_cast<const O*>(node.op.get());
}
// Returns whether the node has an op of one of these types.
template <class... Ops>
bool is_any_of(const Node& node) {
  return ((as<Ops>(node) != nullptr) || ...);
}

// Returns whether the table has a kernel for the op on such operands, with images in layout
// `image`, other than the loops that define the op.
bool runs(const KernelTable& table, const Op& op, std::vector<TensorDesc> in, Layout image);

// Returns how many operands of nodes and outputs of the graph read each tensor, by TensorId.
std::vector<std::size_t> count_readers(const Graph& graph);

}  // namespace cnn::layers
