#include "layers/passes/timed_fusion.h"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "layers/batch_norm.h"
#include "layers/conv.h"
#include "layers/fused_conv.h"
#include "layers/fused_norm.h"
#include "layers/passes/rewriter.h"

namespace cnn::layers {
namespace {

std::string text_of(const Window& w) {
  std::string text = " " + std::to_string(w.kernel_h) + "x" + std::to_string(w.kernel_w);
  text += " stride " + std::to_string(w.stride_h) + "x" + std::to_string(w.stride_w) + " pad";
  for (const std::int64_t pad : {w.pad_top, w.pad_bottom, w.pad_left, w.pad_right}) {
    text += " " + std::to_string(pad);
  }
  return text;
}

std::string text_of(const ConvAttributes& a) {
  return text_of(a.window) + (a.depthwise ? " depthwise" : "") + (a.bias ? " bias" : "") +
         (a.residual ? " residual" : "") + (a.relu ? " relu" : "");
}

std::string text_of_relu(bool relu, float limit) {
  return std::string(relu ? " relu" : "") +
         (limit < std::numeric_limits<float>::infinity() ? " up to " + std::to_string(limit) : "");
}

std::string text_of(const BatchNormAttributes& a) {
  return text_of_relu(a.relu, a.limit) + (a.residual ? " residual" : "");
}

// Returns the attributes of a node's op that its operands do not show. Empty for ops that fusion
// neither makes nor removes, since these are equal in all forms of a step.
std::string attributes_of(const Node& node) {
  if (const auto* conv = as<Conv2d>(node)) {
    return text_of(conv->attributes);
  }
  if (const auto* data = as<Conv2dBackwardData>(node)) {
    return text_of(data->attributes);
  }
  if (const auto* weights = as<Conv2dBackwardWeights>(node)) {
    return text_of(weights->attributes);
  }
  if (const auto* fused = as<FusedConv>(node)) {
    return text_of(fused->attributes.window);
  }
  if (const auto* fused_data = as<ConvBackwardDataNorm>(node)) {
    return text_of(fused_data->window);
  }
  if (const auto* fused_weights = as<FusedConvBackwardWeights>(node)) {
    return text_of(fused_weights->window);
  }
  if (const auto* norm = as<BatchNorm>(node)) {
    return text_of(norm->attributes);
  }
  if (const auto* backward = as<BatchNormBackward>(node)) {
    return text_of(backward->attributes);
  }
  const auto* blend = as<ScaleBias>(node);
  return blend != nullptr ? text_of_relu(blend->relu, blend->limit) : "";
}

Signature signature_of(const Graph& graph, const Node& node) {
  Signature signature;
  for (const TensorId input : node.inputs) {
    signature.in.push_back(graph.info(input).desc);
  }
  for (const TensorId output : node.outputs) {
    signature.out.push_back(graph.info(output).desc);
  }
  return signature;
}

std::string key_of(const Graph& graph, const Node& node) {
  return std::string(node.op->name()) + attributes_of(node) + " " +
         to_string(signature_of(graph, node));
}

// Counts the nodes of a step by key.
class NodeCounts {
 public:
  explicit NodeCounts(std::shared_ptr<const Graph> step) : step_(std::move(step)) {
    for (const Node& node : step_->nodes()) {
      if (!node.inputs.empty()) {  // nodes without inputs only make constants
        Kind& kind = kinds_[key_of(*step_, node)];
        kind.example = &node;
        ++kind.count;
      }
    }
  }

  // Returns the seconds by which this step is longer than `other`, or nothing if a node that one of
  // them has more often has no time.
  std::optional<double> seconds_beyond(const NodeCounts& other, const NodeSeconds& seconds) const {
    const std::optional<double> more = seconds_not_in(other, seconds);
    const std::optional<double> less = more ? other.seconds_not_in(*this, seconds) : std::nullopt;
    return less ? std::optional(*more - *less) : std::nullopt;
  }

 private:
  struct Kind {
    const Node* example = nullptr;
    int count = 0;
  };

  std::optional<double> seconds_not_in(const NodeCounts& other, const NodeSeconds& seconds) const {
    double sum = 0;
    for (const auto& [key, kind] : kinds_) {
      const auto found = other.kinds_.find(key);
      const int more = kind.count - (found == other.kinds_.end() ? 0 : found->second.count);
      if (more <= 0) {
        continue;
      }
      const std::optional<double> once =
          seconds(key, *kind.example->op, signature_of(*step_, *kind.example));
      if (!once) {
        return std::nullopt;
      }
      sum += more * *once;
    }
    return sum;
  }

  std::shared_ptr<const Graph> step_;
  std::map<std::string, Kind> kinds_;
};

// Groups norms that are equal and stand between equal operations; groups and norms are in the order
// of the graph.
std::vector<PlainNorms> kinds_of(const Graph& graph, std::span<const NodeIndex> norms) {
  std::map<TensorId, std::vector<std::string>> readers;
  for (const Node& node : graph.nodes()) {
    const std::string key = key_of(graph, node);
    for (const TensorId input : node.inputs) {
      readers[input].push_back(key);
    }
  }
  std::vector<PlainNorms> kinds;
  std::map<std::string, std::size_t> places;
  for (const NodeIndex norm : norms) {
    const Node& node = graph.nodes()[norm];
    std::string text = key_of(graph, node);
    if (const std::optional<NodeId> producer = graph.producer(node.inputs.front())) {
      text += "\n" + key_of(graph, graph.nodes()[index_of(*producer)]);
    }
    std::vector<std::string>& after = readers[node.outputs.front()];
    std::ranges::sort(after);
    for (const std::string& reader : after) {
      text += "\n" + reader;
    }
    const auto [place, is_new] = places.try_emplace(std::move(text), kinds.size());
    if (is_new) {
      kinds.emplace_back();
    }
    kinds[place->second].insert(norm);
  }
  return kinds;
}

PlainNorms toggled(PlainNorms plain, const PlainNorms& kind) {
  for (const NodeIndex norm : kind) {
    if (plain.erase(norm) == 0) {
      plain.insert(norm);
    }
  }
  return plain;
}

// The current point of the descent: the plain norms and the nodes of their step.
class Descent {
 public:
  Descent(const BuildStep& build, const NodeSeconds& seconds)
      : build_(build), seconds_(seconds), counts_(build({})) {}

  // Takes these norms as the plain ones if that shortens the step, and returns whether it does.
  bool accept(PlainNorms plain) {
    NodeCounts counts(build_(plain));
    const std::optional<double> longer = counts.seconds_beyond(counts_, seconds_);
    if (!longer || *longer >= 0) {
      return false;
    }
    plain_ = std::move(plain);
    counts_ = std::move(counts);
    return true;
  }

  const PlainNorms& plain() const { return plain_; }

 private:
  const BuildStep& build_;
  const NodeSeconds& seconds_;
  PlainNorms plain_;
  NodeCounts counts_;
};

}  // namespace

PlainNorms norms_faster_plain(const Graph& graph, std::span<const NodeIndex> fusible,
                              const BuildStep& build, const NodeSeconds& seconds) {
  const std::vector<PlainNorms> kinds = kinds_of(graph, fusible);
  Descent descent(build, seconds);
  // Every change shortens the sum, so the descent ends by itself; the bound limits its time for
  // networks with very many kinds.
  constexpr int max_sweeps = 4;
  bool improved = true;
  for (int sweep = 0; improved && sweep < max_sweeps; ++sweep) {
    improved = false;
    for (const PlainNorms& kind : kinds) {
      improved = descent.accept(toggled(descent.plain(), kind)) || improved;
    }
  }
  descent.accept(PlainNorms(fusible.begin(), fusible.end()));
  return descent.plain();
}

}  // namespace cnn::layers
