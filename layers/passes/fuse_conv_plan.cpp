#include "layers/passes/fuse_conv_plan.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "layers/batch_norm.h"
#include "layers/conv.h"
#include "layers/elementwise.h"
#include "layers/fused_conv.h"
#include "layers/fused_norm.h"
#include "layers/operands.h"
#include "layers/passes/rewriter.h"

namespace cnn::layers {
namespace {

bool is_plain(const ConvAttributes& a) { return !a.depthwise && !a.bias && !a.residual && !a.relu; }

// The producer and readers of each tensor, and the ops for which the table has kernels.
class GraphIndex {
 public:
  GraphIndex(const Graph& graph, const KernelTable& table, Layout image)
      : graph_(graph), table_(table), image_(image), readers_(graph.tensors().size()) {
    for (NodeIndex i = 0; i < graph.nodes().size(); ++i) {
      for (const TensorId input : node(i).inputs) {
        readers_[index_of(input)].push_back(i);
      }
    }
    counts_ = count_readers(graph);
  }

  const Graph& graph() const { return graph_; }
  const Node& node(NodeIndex i) const { return graph_.nodes()[i]; }
  const TensorDesc& desc(TensorId id) const { return graph_.info(id).desc; }
  std::optional<NodeIndex> producer(TensorId id) const {
    const std::optional<NodeId> made_by = graph_.producer(id);
    return made_by ? std::optional(index_of(*made_by)) : std::nullopt;
  }
  // Returns the nodes that read a tensor; a node occurs once for each operand that is the tensor.
  const std::vector<NodeIndex>& readers(TensorId id) const { return readers_[index_of(id)]; }
  bool is_read_by_host(TensorId id) const {
    return counts_[index_of(id)] != readers_[index_of(id)].size();
  }
  bool is_read_once(TensorId id) const { return counts_[index_of(id)] == 1; }

  bool runs(const Op& op, std::vector<TensorDesc> in) const {
    return layers::runs(table_, op, std::move(in), image_);
  }

 private:
  const Graph& graph_;
  const KernelTable& table_;
  Layout image_;
  std::vector<std::vector<NodeIndex>> readers_;  // by TensorId
  std::vector<std::size_t> counts_;
};

TensorDesc vector_like(const TensorDesc& image, DataType type) {
  return described({image.shape[1]}, type);
}

// Decides node by node, in the order of the graph: first the norms, then their gradients.
class Planner {
 public:
  Planner(const GraphIndex& index, const PlainNorms& plain) : index_(index), plain_(plain) {
    plan_.absorbed.resize(index.graph().nodes().size());
  }

  ConvFusion make() {
    for (NodeIndex i = 0; i < index_.graph().nodes().size(); ++i) {
      if (as<BatchNorm>(index_.node(i)) != nullptr && !plain_.contains(i)) {
        plan_norm(i);
      }
    }
    // A convolution outputs statistics only if a norm uses them.
    for (const auto& [node, norm] : plan_.norms) {
      if (norm.form != NormPlan::Form::kept && norm.conv) {
        plan_.convs[*norm.conv].statistics = true;
      }
    }
    for (NodeIndex i = 0; i < index_.graph().nodes().size(); ++i) {
      if (as<BatchNormBackward>(index_.node(i)) != nullptr) {
        plan_backward(i);
      }
    }
    return std::move(plan_);
  }

 private:
  const TensorDesc& image_of(NodeIndex norm) const {
    return index_.desc(index_.node(norm).inputs.front());
  }

  // Returns whether the node is a plain convolution of the image `id`.
  bool convolves(const Node& node, TensorId id) const {
    const auto* conv = as<Conv2d>(node);
    return conv != nullptr && is_plain(conv->attributes) && node.inputs[0] == id &&
           node.inputs[1] != id;
  }

  // Caches answers: each convolution is asked several times, and a backend may take long to answer.
  bool conv_runs(NodeIndex node, const FusedConvAttributes& attributes) {
    const auto key = std::make_tuple(node, attributes.prologue, attributes.statistics);
    const auto [answer, is_new] = answers_.try_emplace(key);
    if (is_new) {
      answer->second = ask_conv(node, attributes);
    }
    return answer->second;
  }

  bool ask_conv(NodeIndex node, FusedConvAttributes attributes) const {
    const Node& conv = index_.node(node);
    attributes.window = as<Conv2d>(conv)->attributes.window;
    const TensorDesc& x = index_.desc(conv.inputs[0]);
    std::vector<TensorDesc> in{x, index_.desc(conv.inputs[1])};
    if (attributes.prologue) {
      in.insert(in.end(), 2, vector_like(x, x.type));
    }
    return index_.runs(FusedConv(attributes), std::move(in));
  }

  // Returns the convolution that makes the norm's input, if it can output the statistics.
  std::optional<NodeIndex> summing_conv(const Node& norm) {
    const std::optional<NodeIndex> made_by = index_.producer(norm.inputs.front());
    const Conv2d* conv = made_by ? as<Conv2d>(index_.node(*made_by)) : nullptr;
    const bool sums = conv != nullptr && is_plain(conv->attributes) &&
                      conv_runs(*made_by, {.window = {}, .statistics = true});
    return sums ? made_by : std::nullopt;
  }

  bool is_summed(NodeIndex conv) {
    const TensorId y = index_.node(conv).outputs.front();
    return std::ranges::any_of(index_.readers(y), [&](NodeIndex reader) {
      const Node& node = index_.node(reader);
      return as<BatchNorm>(node) != nullptr && !plain_.contains(reader) &&
             summing_conv(node) == conv;
    });
  }

  bool statistics_run(NodeIndex node, DataType affine) const {
    const auto& op = *as<BatchNorm>(index_.node(node));
    const TensorDesc vector = vector_like(image_of(node), DataType::f32);
    return index_.runs(FinishStatistics(1, op.attributes.epsilon, affine),
                       std::vector<TensorDesc>(4, vector)) &&
           (op.attributes.scale || index_.runs(Fill(vector.shape, 1), {}));
  }

  void plan_norm(NodeIndex i) {
    NormPlan norm;
    norm.conv = summing_conv(index_.node(i));
    if (takes_prologues(i, norm)) {
      norm.form = NormPlan::Form::on_load;
      for (const NodeIndex reader : index_.readers(index_.node(i).outputs.front())) {
        if (as<Conv2d>(index_.node(reader)) != nullptr) {
          const bool alone = prologue_runs(reader, is_summed(reader));
          plan_.convs[reader] = {.norm = i, .statistics = alone ? is_summed(reader) : true};
        } else {
          plan_.weights[reader] = i;
        }
      }
    } else if (norm.conv && statistics_run(i, DataType::f32)) {
      plan_stored(i, norm);
    }
    plan_.norms[i] = norm;
  }

  bool prologue_runs(NodeIndex conv, bool statistics) {
    return conv_runs(conv, {.window = {}, .prologue = true, .statistics = statistics});
  }

  // Returns whether all readers of the norm's output can normalise its input themselves.
  bool takes_prologues(NodeIndex i, const NormPlan& norm) {
    const Node& node = index_.node(i);
    const BatchNormAttributes& a = as<BatchNorm>(node)->attributes;
    const TensorId image = node.outputs.front();
    const std::vector<NodeIndex>& readers = index_.readers(image);
    if (!a.relu || a.is_limited() || a.residual || readers.empty() ||
        index_.is_read_by_host(image)) {
      return false;
    }
    const TensorDesc& x = image_of(i);
    if (!statistics_run(i, x.type) || (!norm.conv && !index_.runs(ChannelSums(), {x}))) {
      return false;
    }
    return std::ranges::all_of(readers, [&](NodeIndex reader) {
      if (convolves(index_.node(reader), image)) {
        return prologue_runs(reader, is_summed(reader)) || prologue_runs(reader, true);
      }
      return weights_run(index_.node(reader), image);
    });
  }

  bool weights_run(const Node& node, TensorId image) const {
    const auto* op = as<Conv2dBackwardWeights>(node);
    if (op == nullptr || !is_plain(op->attributes) || node.inputs[1] == image) {
      return false;
    }
    const TensorDesc& x = index_.desc(image);
    const TensorDesc vector = vector_like(x, x.type);
    return index_.runs(FusedConvBackwardWeights(op->attributes.window, op->w_shape),
                       {x, vector, vector, index_.desc(node.inputs[1])});
  }

  void plan_stored(NodeIndex i, NormPlan& norm) {
    const BatchNormAttributes& a = as<BatchNorm>(index_.node(i))->attributes;
    if (a.residual) {
      norm.joined = joined_norm(i);
    }
    const ScaleBias::Residual residual = norm.joined  ? ScaleBias::Residual::normalised
                                         : a.residual ? ScaleBias::Residual::image
                                                      : ScaleBias::Residual::none;
    if (scale_bias_runs(i, residual)) {
      norm.form = NormPlan::Form::stored;
      if (norm.joined) {
        plan_.norms[*norm.joined].form = NormPlan::Form::joined;
      }
    }
  }

  bool scale_bias_runs(NodeIndex i, ScaleBias::Residual residual) const {
    const TensorDesc& x = image_of(i);
    const TensorDesc vector = vector_like(x, DataType::f32);
    std::vector<TensorDesc> in{x, vector, vector};
    if (residual == ScaleBias::Residual::image) {
      in.push_back(x);
    } else if (residual == ScaleBias::Residual::normalised) {
      in.insert(in.end(), {x, vector, vector});
    }
    const BatchNormAttributes& a = as<BatchNorm>(index_.node(i))->attributes;
    return index_.runs(ScaleBias(a.relu, residual, false, a.limit), std::move(in));
  }

  // Returns the norm that makes the residual of norm `i`, if nothing else reads it, so that its
  // output need not be stored.
  std::optional<NodeIndex> joined_norm(NodeIndex i) const {
    const TensorId residual = index_.node(i).inputs.back();
    const std::optional<NodeIndex> made_by = index_.producer(residual);
    const BatchNorm* other = made_by ? as<BatchNorm>(index_.node(*made_by)) : nullptr;
    const bool joins = other != nullptr && !other->attributes.relu && !other->attributes.residual &&
                       index_.node(*made_by).outputs.front() == residual &&
                       index_.is_read_once(residual) && plan_.fused_norm(*made_by) != nullptr &&
                       scale_bias_runs(i, ScaleBias::Residual::normalised);
    return joins ? made_by : std::nullopt;
  }

  void plan_backward(NodeIndex i) {
    const Node& node = index_.node(i);
    const auto& op = *as<BatchNormBackward>(node);
    const BatchNormAttributes& a = op.attributes;
    const TensorId dy = node.inputs[op.index_of_dy()];
    const std::optional<NodeIndex> norm =
        index_.producer(node.inputs[NormOperandIndices(a.scale).mean]);
    const std::optional<NodeIndex> made_by = index_.producer(dy);
    if (!a.relu || a.is_limited() || a.residual || op.joined || !norm || !plan_.fused_norm(*norm) ||
        !made_by || !index_.is_read_once(dy)) {
      return;
    }
    const Node& data = index_.node(*made_by);
    const auto* conv = as<Conv2dBackwardData>(data);
    if (conv == nullptr || !is_plain(conv->attributes)) {
      return;
    }
    const TensorDesc& x = index_.desc(node.inputs.front());
    const TensorDesc vector = vector_like(x, DataType::f32);
    if (index_.runs(ConvBackwardDataNorm(conv->attributes.window),
                    {index_.desc(data.inputs[0]), index_.desc(data.inputs[1]), x, vector, vector,
                     vector, vector}) &&
        index_.runs(NormBackwardEnd(), {x, x, vector, vector, vector, vector, vector}) &&
        index_.runs(Fill(vector.shape, 0), {}) && index_.runs(Fill(vector.shape, 1), {})) {
      plan_.backward[i] = {.norm = *norm, .data = *made_by};
      plan_.absorbed[*made_by] = true;
    }
  }

  const GraphIndex& index_;
  const PlainNorms& plain_;
  ConvFusion plan_;
  std::map<std::tuple<NodeIndex, bool, bool>, bool> answers_;  // node, prologue, statistics
};

}  // namespace

ConvFusion plan_conv_fusion(const Graph& graph, const KernelTable& table, Layout image,
                            const PlainNorms& plain) {
  const GraphIndex index(graph, table, image);
  return Planner(index, plain).make();
}

}  // namespace cnn::layers
