#include "layers/passes/fuse_conv.h"

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "layers/batch_norm.h"
#include "layers/conv.h"
#include "layers/elementwise.h"
#include "layers/fused_conv.h"
#include "layers/fused_norm.h"
#include "layers/operands.h"
#include "layers/passes/fuse_conv_plan.h"
#include "layers/passes/rewriter.h"

namespace cnn::layers {
namespace {

// Rewrites the graph node by node as the plan says.
class Emitter {
 public:
  Emitter(const Graph& graph, const ConvFusion& plan) : plan_(plan), rewriter_(graph) {}

  Rewritten run() {
    const std::span<const Node> nodes = rewriter_.old().nodes();
    for (NodeIndex i = 0; i < nodes.size(); ++i) {
      if (const auto conv = plan_.convs.find(i); conv != plan_.convs.end()) {
        emit_conv(i, conv->second);
      } else if (const NormPlan* norm = plan_.fused_norm(i)) {
        emit_norm(i, *norm);
      } else if (const auto weights = plan_.weights.find(i); weights != plan_.weights.end()) {
        emit_weights(nodes[i], weights->second);
      } else if (const auto back = plan_.backward.find(i); back != plan_.backward.end()) {
        emit_backward(nodes[i], back->second);
      } else if (!plan_.absorbed[i]) {
        rewriter_.copy(nodes[i]);
      }
    }
    return rewriter_.finish();
  }

 private:
  struct Sums {
    Value sum, squares;
  };
  struct NormCoefficients {  // the coefficients of a norm of image x: y = a x + b
    Value x, mean, r, a, b;
    Value gate_a, gate_b;  // the values of a and b as rounded, in f32
  };

  Value now(TensorId old) { return {&rewriter_.graph(), rewriter_.now(old)}; }

  void emit_conv(NodeIndex i, const ConvPlan& conv) {
    const Node& node = rewriter_.old().nodes()[i];
    std::vector<Value> in;
    if (conv.norm) {
      const NormCoefficients& norm = coefficients_.at(*conv.norm);
      in = {norm.x, now(node.inputs[1]), norm.a, norm.b};
    } else {
      in = {now(node.inputs[0]), now(node.inputs[1])};
    }
    const std::vector<Value> out =
        emit_all(FusedConv({.window = as<Conv2d>(node)->attributes.window,
                            .prologue = conv.norm.has_value(),
                            .statistics = conv.statistics}),
                 in);
    rewriter_.moved(node.outputs.front(), out[0].id);
    if (conv.statistics) {
      sums_[i] = {out[1], out[2]};
    }
  }

  // Returns gamma of the norm, or ones if it has none.
  Value gamma_of(const Node& node, const BatchNormAttributes& a) {
    if (a.scale) {
      return now(node.inputs[1]);
    }
    return constant(rewriter_.old().info(node.inputs[1]).desc.shape[0], 1);
  }

  Value constant(std::int64_t length, float value) {
    const auto [found, is_new] = constants_.try_emplace(std::pair(length, value));
    if (is_new) {
      found->second = fill(rewriter_.graph(), Shape{length}, value);
    }
    return found->second;
  }

  void emit_norm(NodeIndex i, const NormPlan& norm) {
    const Node& node = rewriter_.old().nodes()[i];
    const BatchNormAttributes& a = as<BatchNorm>(node)->attributes;
    const Value x = now(node.inputs.front());
    if (!norm.conv) {
      const std::vector<Value> out = emit_all(ChannelSums(), std::vector<Value>{x});
      sums_[i] = {out[0], out[1]};
    }
    const Sums& sums = sums_.at(norm.conv.value_or(i));
    const Dims d = dims(x.desc().shape);
    const FinishStatistics finish(
        static_cast<double>(d.n * d.pixels()), a.epsilon,
        norm.form == NormPlan::Form::on_load ? x.desc().type : DataType::f32);
    const std::vector<Value> out =
        emit_all(finish, std::vector<Value>{sums.sum, sums.squares, gamma_of(node, a),
                                            now(node.inputs[NormOperandIndices(a.scale).beta])});
    rewriter_.moved(node.outputs[1], out[0].id);
    rewriter_.moved(node.outputs[2], out[1].id);
    const std::size_t in_f32 = out.size() - 2;
    coefficients_[i] = {.x = x,
                        .mean = out[0],
                        .r = out[2],
                        .a = out[3],
                        .b = out[4],
                        .gate_a = out[in_f32],
                        .gate_b = out[in_f32 + 1]};
    if (norm.form == NormPlan::Form::stored) {
      emit_stored(node, norm, coefficients_.at(i));
    }
  }

  void emit_stored(const Node& node, const NormPlan& norm, const NormCoefficients& coefficients) {
    const BatchNormAttributes& a = as<BatchNorm>(node)->attributes;
    std::vector<Value> in{coefficients.x, coefficients.a, coefficients.b};
    ScaleBias::Residual residual = ScaleBias::Residual::none;
    if (norm.joined) {
      const NormCoefficients& other = coefficients_.at(*norm.joined);
      in.insert(in.end(), {other.x, other.a, other.b});
      residual = ScaleBias::Residual::normalised;
    } else if (a.residual) {
      in.push_back(now(node.inputs.back()));
      residual = ScaleBias::Residual::image;
    }
    const std::vector<Value> out = emit_all(ScaleBias(a.relu, residual, false, a.limit), in);
    rewriter_.moved(node.outputs.front(), out.front().id);
  }

  void emit_weights(const Node& node, NodeIndex norm) {
    const auto& op = *as<Conv2dBackwardWeights>(node);
    const NormCoefficients& coefficients = coefficients_.at(norm);
    const Value dw = emit(FusedConvBackwardWeights(op.attributes.window, op.w_shape),
                          {coefficients.x, coefficients.a, coefficients.b, now(node.inputs[1])});
    rewriter_.moved(node.outputs.front(), dw.id);
  }

  // The forward pass opened the gate where a x + b > 0 with rounded a and b. Recomputing it from
  // gamma xhat + beta would give a number with another sign near zero. So ConvBackwardDataNorm gets
  // a norm of mean 0 and deviation 1 with gamma = a and beta = b, which has the same gate
  // except where the output is zero, and outputs the sums of g and g x. NormBackwardEnd turns these
  // sums into the gradients of the true norm.
  void emit_backward(const Node& node, const BackwardPlan& plan) {
    const Node& data = rewriter_.old().nodes()[plan.data];
    const NormCoefficients& coefficients = coefficients_.at(plan.norm);
    const BatchNormAttributes& a = as<BatchNormBackward>(node)->attributes;
    const std::int64_t channels = coefficients.x.desc().shape[1];
    const std::vector<Value> out =
        emit_all(ConvBackwardDataNorm(as<Conv2dBackwardData>(data)->attributes.window),
                 std::vector<Value>{now(data.inputs[0]), now(data.inputs[1]), coefficients.x,
                                    constant(channels, 0), constant(channels, 1),
                                    coefficients.gate_a, coefficients.gate_b});
    const std::vector<Value> end =
        emit_all(NormBackwardEnd(),
                 std::vector<Value>{out[0], coefficients.x, out[1], out[2], coefficients.mean,
                                    coefficients.r, gamma_of(node, a)});
    rewriter_.moved(node.outputs[0], end[0].id);
    rewriter_.moved(node.outputs[1], out[2].id);
    if (a.scale) {
      rewriter_.moved(node.outputs[2], end[1].id);
    }
  }

  const ConvFusion& plan_;
  Rewriter rewriter_;
  std::map<NodeIndex, Sums>
      sums_;  // by the node that makes them: a convolution, or the norm itself
  std::map<NodeIndex, NormCoefficients> coefficients_;         // by norm
  std::map<std::pair<std::int64_t, float>, Value> constants_;  // by length and value
};

}  // namespace

Rewritten fuse_convolutions(const Graph& graph, const KernelTable& table, Layout image,
                            const PlainNorms& plain) {
  const ConvFusion plan = plan_conv_fusion(graph, table, image, plain);
  return Emitter(graph, plan).run();
}

bool fuses_convolutions(const KernelTable& table, DataType type, Layout image) {
  const TensorDesc x = described({32, 64, 56, 56}, type);
  const TensorDesc w = described({64, 64, 1, 1}, type);
  return runs(table, FusedConv({.window = {}, .statistics = true}), {x, w}, image);
}

}  // namespace cnn::layers
