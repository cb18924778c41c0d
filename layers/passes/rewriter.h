#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "runtime/graph.h"
#include "runtime/kernel.h"

namespace cnn::layers {

// Copies a graph node by node into a new one, for passes. Tensors that no node makes (parameters,
// state, inputs) are copied first, in their order; `persistent`, by old TensorId, may change how
// they lie.
class Rewriter {
 public:
  explicit Rewriter(const Graph& old, std::span<const std::optional<TensorDesc>> persistent = {});

  const Graph& old() const { return old_; }
  TensorId now(TensorId old) const;  // where a copied tensor went; throws if it is not there (yet)
  // Appends `op` reading the new tensors of old_inputs; its outputs become the new tensors of
  // old_outputs, with their descriptions and names.
  void copy(std::shared_ptr<const Op> op, std::span<const TensorId> old_inputs,
            std::span<const TensorId> old_outputs);
  void copy(const Node& node) { copy(node.op, node.inputs, node.outputs); }
  void moved(TensorId old, TensorId to) { was_[index_of(old)] = to; }
  Graph& graph() { return *graph_; }
  const Graph& graph() const { return *graph_; }
  // Copies the graph's outputs and returns the result.
  Rewritten finish();

 private:
  const Graph& old_;
  std::shared_ptr<Graph> graph_;
  std::vector<std::optional<TensorId>> was_;
};

// The same graph once more.
Rewritten copy_of(const Graph& graph);

// The op of a node if it is an O, else nullptr.
template <class O>
const O* as(const Node& node) {
  return dynamic_cast<const O*>(node.op.get());
}

// Whether the table has a kernel for the op on such operands, its images laid out as `image`: one
// that is more than the loops which define it.
bool runs(const KernelTable& table, const Op& op, std::vector<TensorDesc> in, Layout image);

// How many operands of nodes and outputs of the graph read each tensor, by TensorId.
std::vector<std::size_t> count_readers(const Graph& graph);

}  // namespace cnn::layers
