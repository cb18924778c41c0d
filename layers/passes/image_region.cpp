#include "layers/passes/image_region.h"

#include <algorithm>

namespace cnn::layers {
namespace {

// Returns whether no node outside the region reads a tensor of the region other than the cut.
bool is_alone(const Graph& graph, const std::vector<bool>& region, TensorId cut) {
  const auto leaves = [&](TensorId id) {
    const std::optional<NodeId> maker = graph.producer(id);
    return id != cut && maker && region[index_of(*maker)];
  };
  for (std::size_t n = 0; n < region.size(); ++n) {
    if (!region[n] && std::ranges::any_of(graph.nodes()[n].inputs, leaves)) {
      return false;
    }
  }
  return std::ranges::none_of(graph.outputs(),
                              [&](const Output& output) { return leaves(output.tensor); });
}

}  // namespace

bool is_batch(const TensorInfo& info) {
  const bool is_synthetic = info.role == Role::state && !info.saved;
  return info.desc.shape.rank() == 4 && (info.role == Role::input || is_synthetic);
}

SliceKinds::SliceKinds(const Graph& graph, const std::function<bool(const Node&)>& can_slice) {
  for (const TensorInfo& info : graph.tensors()) {
    const bool is_variable = info.role != Role::input && info.role != Role::activation;
    kinds_.push_back(is_batch(info) ? SliceKind::sliced
                     : is_variable  ? SliceKind::shared
                                    : SliceKind::whole);
  }
  const auto kind_of = [&](const Node& node) {
    const auto all = [&](auto accepts) { return std::ranges::all_of(node.inputs, accepts); };
    if (node.inputs.empty()) {
      return SliceKind::whole;
    }
    if (all([&](TensorId id) { return (*this)[id] == SliceKind::shared; })) {
      return SliceKind::shared;
    }
    const bool is_sliced = (*this)[node.inputs.front()] == SliceKind::sliced &&
                           all([&](TensorId id) { return (*this)[id] != SliceKind::whole; }) &&
                           can_slice(node);
    return is_sliced ? SliceKind::sliced : SliceKind::whole;
  };
  for (const Node& node : graph.nodes()) {
    const SliceKind kind = kind_of(node);
    for (const TensorId output : node.outputs) {
      kinds_[index_of(output)] = kind;
    }
  }
}

std::vector<bool> region_of(const Graph& graph, const SliceKinds& kinds, TensorId cut) {
  std::vector<bool> region(graph.nodes().size(), false);
  std::vector<TensorId> open{cut};
  while (!open.empty()) {
    const std::optional<NodeId> maker = graph.producer(open.back());
    open.pop_back();
    if (!maker || region[index_of(*maker)]) {
      continue;
    }
    region[index_of(*maker)] = true;
    for (const TensorId input : graph.nodes()[index_of(*maker)].inputs) {
      if (kinds[input] == SliceKind::sliced) {
        open.push_back(input);
      }
    }
  }
  return region;
}

std::optional<TensorId> find_cut(const Graph& graph, const SliceKinds& kinds) {
  for (std::size_t n = graph.nodes().size(); n-- > 0;) {
    const Node& node = graph.nodes()[n];
    if (kinds.is_sliced(node) &&
        is_alone(graph, region_of(graph, kinds, node.outputs.front()), node.outputs.front())) {
      return node.outputs.front();
    }
  }
  return std::nullopt;
}

Rewritten replace_region(const Graph& graph, const std::vector<bool>& region, TensorId cut,
                         const std::function<Value(Rewriter&)>& make) {
  Rewriter rewriter(graph);
  for (std::size_t n = 0; n < region.size(); ++n) {
    if (!region[n]) {
      rewriter.copy(graph.nodes()[n]);
    } else if (graph.producer(cut) == NodeId{static_cast<std::uint32_t>(n)}) {
      rewriter.moved(cut, make(rewriter).id);
    }
  }
  return rewriter.finish();
}

}  // namespace cnn::layers
