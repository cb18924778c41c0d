#include "layers/passes/fuse_gradients.h"

#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "layers/batch_norm.h"
#include "layers/elementwise.h"
#include "layers/fused_norm.h"
#include "layers/passes/rewriter.h"
#include "layers/relu_mask.h"

namespace cnn::layers {
namespace {

// Returns the Add of two operands that makes the gradient of this norm's output, if the norm is its
// only reader and the sum has at most `largest` bytes.
std::optional<NodeId> own_sum(const Graph& graph, const std::vector<std::size_t>& readers,
                              const Node& node, std::size_t largest) {
  const auto* norm = as<BatchNormBackward>(node);
  if (norm == nullptr || norm->joined) {
    return std::nullopt;
  }
  const TensorId dy = node.inputs[norm->index_of_dy()];
  const std::optional<NodeId> made_by = graph.producer(dy);
  if (!made_by || readers[index_of(dy)] != 1 || graph.info(dy).desc.bytes() > largest) {
    return std::nullopt;
  }
  const Node& sum = graph.nodes()[index_of(*made_by)];
  const auto* add = as<Add>(sum);
  return add != nullptr && !add->relu && sum.inputs.size() == 2 ? made_by : std::nullopt;
}

void emit_joined(Rewriter& rewriter, const Node& node, const Node& sum) {
  const auto& norm = *as<BatchNormBackward>(node);
  std::vector<TensorId> inputs = node.inputs;
  const auto dy = inputs.begin() + static_cast<std::ptrdiff_t>(norm.index_of_dy());
  *dy = sum.inputs[0];
  inputs.insert(dy + 1, sum.inputs[1]);
  rewriter.copy(std::make_shared<const BatchNormBackward>(norm.attributes, true), inputs,
                node.outputs);
}

// Returns the op of the node with a mask of its output as a further output; nullptr if it cannot
// make one.
std::shared_ptr<const Op> with_mask(const Node& node) {
  if (const auto* norm = as<BatchNorm>(node)) {
    BatchNormAttributes a = norm->attributes;
    const bool fits = a.relu && a.residual && !a.mask;
    a.mask = true;
    return fits ? std::make_shared<const BatchNorm>(std::move(a)) : nullptr;
  }
  if (const auto* blend = as<ScaleBias>(node)) {
    const bool fits = blend->relu && !blend->mask;
    return fits ? std::make_shared<const ScaleBias>(true, blend->residual, true) : nullptr;
  }
  return nullptr;
}

// Decides which nodes output masks and which nodes read them.
class MaskPlan {
 public:
  MaskPlan(const Graph& graph, const KernelTable& table, Layout image)
      : graph_(graph), table_(table), image_(image) {
    for (std::size_t i = 0; i < graph.nodes().size(); ++i) {
      plan(i);
    }
  }

  std::shared_ptr<const Op> maker(std::size_t node) const { return find(makers_, node); }
  std::shared_ptr<const Op> reader(std::size_t node) const { return find(readers_, node); }

 private:
  using Ops = std::map<std::size_t, std::shared_ptr<const Op>>;  // by node

  static std::shared_ptr<const Op> find(const Ops& ops, std::size_t node) {
    const auto found = ops.find(node);
    return found == ops.end() ? nullptr : found->second;
  }

  std::vector<TensorDesc> descs(const Node& node) const {
    std::vector<TensorDesc> result;
    for (const TensorId input : node.inputs) {
      result.push_back(graph_.info(input).desc);
    }
    return result;
  }

  void plan(std::size_t i) {
    const Node& node = graph_.nodes()[i];
    const auto* norm = as<BatchNormBackward>(node);
    if (norm == nullptr || !norm->passes_gradient() || norm->attributes.mask) {
      return;
    }
    const TensorId y = node.inputs.back();
    const std::optional<NodeId> made_by = graph_.producer(y);
    if (!made_by || graph_.nodes()[index_of(*made_by)].outputs.front() != y) {
      return;
    }
    const Node& source = graph_.nodes()[index_of(*made_by)];
    std::shared_ptr<const Op> maker = with_mask(source);
    BatchNormAttributes a = norm->attributes;
    a.mask = true;
    auto reader = std::make_shared<const BatchNormBackward>(std::move(a), norm->joined);
    std::vector<TensorDesc> in = descs(node);
    in.back() = relu_mask_of(in.front().shape);
    if (maker != nullptr && runs(table_, *maker, descs(source), image_) &&
        runs(table_, *reader, std::move(in), image_)) {
      makers_[index_of(*made_by)] = std::move(maker);
      readers_[i] = std::move(reader);
    }
  }

  const Graph& graph_;
  const KernelTable& table_;
  Layout image_;
  Ops makers_, readers_;
};

std::vector<Value> operands(Rewriter& rewriter, const Node& node) {
  std::vector<Value> in;
  for (const TensorId input : node.inputs) {
    in.push_back({&rewriter.graph(), rewriter.now(input)});
  }
  return in;
}

// Appends an op whose first outputs replace those of the node, and returns its last output.
Value emit_in_place_of(Rewriter& rewriter, const Node& node, std::shared_ptr<const Op> op,
                       std::span<const Value> in) {
  const std::vector<Value> out = rewriter.graph().append(std::move(op), in);
  for (std::size_t i = 0; i < node.outputs.size(); ++i) {
    rewriter.moved(node.outputs[i], out[i].id);
  }
  return out.back();
}

}  // namespace

Rewritten fuse_gradient_adds(const Graph& graph, std::size_t largest) {
  const std::vector<std::size_t> readers = count_readers(graph);
  std::vector<std::optional<NodeId>> sums;
  std::vector<bool> absorbed(graph.nodes().size());
  for (const Node& node : graph.nodes()) {
    sums.push_back(own_sum(graph, readers, node, largest));
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

Rewritten store_relu_masks(const Graph& graph, const KernelTable& table, Layout image) {
  const MaskPlan plan(graph, table, image);
  std::map<TensorId, Value> masks;  // by their image in the old graph
  Rewriter rewriter(graph);
  for (std::size_t i = 0; i < graph.nodes().size(); ++i) {
    const Node& node = graph.nodes()[i];
    if (std::shared_ptr<const Op> maker = plan.maker(i)) {
      masks[node.outputs.front()] =
          emit_in_place_of(rewriter, node, std::move(maker), operands(rewriter, node));
    } else if (std::shared_ptr<const Op> reader = plan.reader(i)) {
      std::vector<Value> in = operands(rewriter, node);
      in.back() = masks.at(node.inputs.back());
      emit_in_place_of(rewriter, node, std::move(reader), in);
    } else {
      rewriter.copy(node);
    }
  }
  return rewriter.finish();
}

}  // namespace cnn::layers
