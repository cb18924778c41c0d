#include "layers/passes/fuse.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "layers/activation.h"
#include "layers/batch_norm.h"
#include "layers/conv.h"
#include "layers/dense.h"
#include "layers/elementwise.h"
#include "layers/passes/rewriter.h"

namespace cnn::layers {
namespace {

// Finds the producer of a tensor that has a single reader.
class Reader {
 public:
  explicit Reader(const Graph& graph) : graph_(graph), readers_(count_readers(graph)) {}

  // Returns the node whose first output is `tensor`, if the tensor has only one reader; else
  // nullptr.
  const Node* sole_producer(TensorId tensor) const {
    const std::optional<NodeId> id = graph_.producer(tensor);
    if (!id || readers_[index_of(tensor)] != 1) {
      return nullptr;
    }
    const Node& node = graph_.nodes()[index_of(*id)];
    return node.outputs.front() == tensor ? &node : nullptr;
  }

 private:
  const Graph& graph_;
  std::vector<std::size_t> readers_;
};

// A node that replaces several, at the position of the last of them.
struct Fused {
  std::shared_ptr<const Op> op;
  std::vector<TensorId> inputs, outputs;
  std::vector<const Node*> absorbed;
};

// Returns the norm of a training step with a ReLU that has an upper limit as its epilogue, or
// nullptr if `producer` is none. Other ops cannot carry the limit.
std::shared_ptr<const Op> with_limited_relu(const Node& producer, float limit) {
  const auto* norm = as<BatchNorm>(producer);
  if (norm == nullptr || norm->attributes.relu || norm->attributes.residual) {
    return nullptr;
  }
  BatchNormAttributes attributes = norm->attributes;
  attributes.relu = true;
  attributes.limit = limit;
  return std::make_shared<const BatchNorm>(attributes);
}

// Returns the op of `producer` with a ReLU as its epilogue, or nullptr if it cannot carry one.
std::shared_ptr<const Op> with_relu(const Node& producer) {
  if (const auto* norm = as<BatchNorm>(producer); norm != nullptr && !norm->attributes.relu) {
    BatchNormAttributes attributes = norm->attributes;
    attributes.relu = true;
    return std::make_shared<const BatchNorm>(attributes);
  }
  if (const auto* norm = as<BatchNormInference>(producer);
      norm != nullptr && !norm->attributes.relu) {
    BatchNormAttributes attributes = norm->attributes;
    attributes.relu = true;
    return std::make_shared<const BatchNormInference>(attributes);
  }
  if (const auto* conv = as<Conv2d>(producer); conv != nullptr && !conv->attributes.relu) {
    ConvAttributes attributes = conv->attributes;
    attributes.relu = true;
    return std::make_shared<const Conv2d>(attributes);
  }
  if (const auto* dense = as<Dense>(producer); dense != nullptr && !dense->attributes.relu) {
    return std::make_shared<const Dense>(
        DenseAttributes{.bias = dense->attributes.bias, .relu = true});
  }
  if (const auto* sum = as<Add>(producer); sum != nullptr && !sum->relu) {
    return std::make_shared<const Add>(true);
  }
  return nullptr;
}

// Returns the batch norm with a residual and a ReLU as its epilogue, or nullptr if the node is not
// a batch norm without them.
std::shared_ptr<const Op> with_residual(const Node& norm_node) {
  const auto fuse = [](BatchNormAttributes attributes) {
    attributes.residual = true;
    attributes.relu = true;
    return attributes;
  };
  if (const auto* norm = as<BatchNorm>(norm_node);
      norm != nullptr && !norm->attributes.relu && !norm->attributes.residual) {
    return std::make_shared<const BatchNorm>(fuse(norm->attributes));
  }
  if (const auto* norm = as<BatchNormInference>(norm_node);
      norm != nullptr && !norm->attributes.relu && !norm->attributes.residual) {
    return std::make_shared<const BatchNormInference>(fuse(norm->attributes));
  }
  return nullptr;
}

std::vector<TensorId> replace_front(const std::vector<TensorId>& outputs, TensorId front) {
  std::vector<TensorId> result = outputs;
  result.front() = front;
  return result;
}

std::optional<Fused> fuse_residual(const Reader& reader, const Node& sum, const Node& relu) {
  if (sum.inputs.size() != 2 || as<Add>(sum)->relu) {
    return std::nullopt;
  }
  // Takes the norm that is computed last. Its gradient comes first, and that of the other branch
  // only where this branch has ended: together, their images would be large.
  std::optional<Fused> fused;
  for (const std::size_t side : {0U, 1U}) {
    const Node* norm = reader.sole_producer(sum.inputs[side]);
    std::shared_ptr<const Op> op = norm == nullptr ? nullptr : with_residual(*norm);
    if (op != nullptr && (!fused || norm > fused->absorbed.front())) {
      std::vector<TensorId> inputs = norm->inputs;
      inputs.push_back(sum.inputs[1 - side]);
      fused = Fused{.op = std::move(op),
                    .inputs = std::move(inputs),
                    .outputs = replace_front(norm->outputs, relu.outputs.front()),
                    .absorbed = {norm, &sum}};
    }
  }
  return fused;
}

std::optional<Fused> fuse_relu(const Reader& reader, const Node& relu) {
  const Relu* activation = as<Relu>(relu);
  const Node* producer =
      activation != nullptr ? reader.sole_producer(relu.inputs.front()) : nullptr;
  if (producer == nullptr) {
    return std::nullopt;
  }
  const bool is_limited = !std::isinf(activation->limit);
  if (as<Add>(*producer) != nullptr && !is_limited) {
    if (std::optional<Fused> fused = fuse_residual(reader, *producer, relu)) {
      return fused;
    }
  }
  std::shared_ptr<const Op> op =
      is_limited ? with_limited_relu(*producer, activation->limit) : with_relu(*producer);
  if (op == nullptr) {
    return std::nullopt;
  }
  return Fused{.op = std::move(op),
               .inputs = producer->inputs,
               .outputs = replace_front(producer->outputs, relu.outputs.front()),
               .absorbed = {producer}};
}

// Returns the convolution of the node if it can still take an epilogue: it has neither residual nor
// ReLU. Else nullptr.
const Conv2d* open_conv(const Node* node) {
  const Conv2d* conv = node == nullptr ? nullptr : as<Conv2d>(*node);
  return conv != nullptr && !conv->attributes.relu && !conv->attributes.residual ? conv : nullptr;
}

// Fuses an Add of two operands, with or without ReLU, into the Conv2d that makes one of them: the
// other operand becomes the residual of the convolution.
std::optional<Fused> fuse_conv_add(const Reader& reader, const Node& sum) {
  const Add* op = as<Add>(sum);
  if (op == nullptr || sum.inputs.size() != 2) {
    return std::nullopt;
  }
  for (const std::size_t side : {0U, 1U}) {
    const Node* producer = reader.sole_producer(sum.inputs[side]);
    if (const Conv2d* conv = open_conv(producer)) {
      ConvAttributes attributes = conv->attributes;
      attributes.residual = true;
      attributes.relu = op->relu;
      std::vector<TensorId> inputs = producer->inputs;
      inputs.push_back(sum.inputs[1 - side]);
      return Fused{.op = std::make_shared<const Conv2d>(attributes),
                   .inputs = std::move(inputs),
                   .outputs = sum.outputs,
                   .absorbed = {producer}};
    }
  }
  return std::nullopt;
}

// The decision for each node: the fused node that replaces it, and whether another node absorbs it.
struct Decisions {
  explicit Decisions(const Graph& graph)
      : fused(graph.nodes().size()), absorbed(graph.nodes().size()) {}

  void take(const Graph& graph, std::size_t node, Fused what) {
    for (const Node* gone : what.absorbed) {
      absorbed[static_cast<std::size_t>(gone - graph.nodes().data())] = true;
    }
    fused[node] = std::move(what);
  }

  std::vector<std::optional<Fused>> fused;
  std::vector<bool> absorbed;
};

Rewritten carry_out(const Graph& graph, const Decisions& decisions) {
  Rewriter rewriter(graph);
  for (std::size_t i = 0; i < graph.nodes().size(); ++i) {
    if (const std::optional<Fused>& fused = decisions.fused[i]) {
      rewriter.copy(fused->op, fused->inputs, fused->outputs);
    } else if (!decisions.absorbed[i]) {
      rewriter.copy(graph.nodes()[i]);
    }
  }
  return rewriter.finish();
}

// Emits FoldBatchNorm on the convolution's weights and the convolution with the folded ones.
void emit_folded(Rewriter& rewriter, const Node& conv_node, const Node& norm_node) {
  const auto& conv = *as<Conv2d>(conv_node);
  const auto& norm = *as<BatchNormInference>(norm_node);
  const bool scale = norm.attributes.scale;
  Graph& graph = rewriter.graph();
  const auto value = [&](TensorId old) { return Value{&graph, rewriter.now(old)}; };

  std::vector<Value> fold{value(conv_node.inputs[1])};
  for (std::size_t i = 1; i <= NormOperandIndices(scale).variance; ++i) {
    fold.push_back(value(norm_node.inputs[i]));
  }
  if (conv.attributes.bias) {
    fold.push_back(value(conv_node.inputs[2]));
  }
  const std::vector<Value> folded =
      emit_all(FoldBatchNorm(norm.attributes.epsilon, scale, conv.attributes.bias),
               std::span<const Value>(fold));

  ConvAttributes attributes = conv.attributes;
  attributes.bias = true;
  attributes.relu = norm.attributes.relu;
  attributes.residual = norm.attributes.residual;
  std::vector<Value> in{value(conv_node.inputs[0]), folded[0], folded[1]};
  if (attributes.residual) {
    in.push_back(value(norm_node.inputs.back()));
  }
  const std::vector<Value> out = emit_all(Conv2d(attributes), std::span<const Value>(in));
  rewriter.moved(norm_node.outputs.front(), out.front().id);
}

}  // namespace

Rewritten fuse_activations(const Graph& graph) {
  const Reader reader(graph);
  Decisions decisions(graph);
  for (std::size_t i = 0; i < graph.nodes().size(); ++i) {
    if (std::optional<Fused> fused = fuse_relu(reader, graph.nodes()[i])) {
      decisions.take(graph, i, *std::move(fused));
    }
  }
  return carry_out(graph, decisions);
}

Rewritten fold_batch_norms(const Graph& graph) {
  const Reader reader(graph);
  Decisions decisions(graph);
  std::vector<const Node*> conv_of(graph.nodes().size());
  for (std::size_t i = 0; i < graph.nodes().size(); ++i) {
    const Node& node = graph.nodes()[i];
    const auto* norm = as<BatchNormInference>(node);
    if (norm != nullptr && !norm->attributes.is_limited()) {
      const Node* producer = reader.sole_producer(node.inputs.front());
      if (open_conv(producer) != nullptr) {
        conv_of[i] = producer;
        decisions.absorbed[static_cast<std::size_t>(producer - graph.nodes().data())] = true;
      }
    } else if (std::optional<Fused> fused = fuse_conv_add(reader, node)) {
      decisions.take(graph, i, *std::move(fused));
    }
  }
  Rewriter rewriter(graph);
  for (std::size_t i = 0; i < graph.nodes().size(); ++i) {
    const Node& node = graph.nodes()[i];
    if (conv_of[i] != nullptr) {
      emit_folded(rewriter, *conv_of[i], node);
    } else if (const std::optional<Fused>& fused = decisions.fused[i]) {
      rewriter.copy(fused->op, fused->inputs, fused->outputs);
    } else if (!decisions.absorbed[i]) {
      rewriter.copy(node);
    }
  }
  return rewriter.finish();
}

}  // namespace cnn::layers
