#include "layers/passes/slice_norms.h"

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "layers/activation.h"
#include "layers/batch_norm.h"
#include "layers/batch_slice.h"
#include "layers/concat.h"
#include "layers/conv.h"
#include "layers/dense.h"
#include "layers/elementwise.h"
#include "layers/lrn.h"
#include "layers/operands.h"
#include "layers/passes/image_region.h"
#include "layers/passes/rewriter.h"
#include "layers/passes/slice_batch.h"
#include "layers/pool.h"
#include "layers/sliced_norm.h"
#include "layers/subsample.h"
#include "runtime/error.h"

namespace cnn::layers {
namespace {

// Returns whether all operands and results are images, of which each result depends on one image of
// each operand.
bool maps_each_image(const Node& node) {
  return is_any_of<Relu, ReluBackward, MaxPool, MaxPoolBackward, AveragePool, AveragePoolBackward,
                   Lrn, LrnBackward, WithinLrn, WithinLrnBackward, Concat, Split, Add, Scale,
                   Convert, Normalise, PadChannels, SliceChannels, Subsample, SubsampleBackward,
                   SpatialMean, SpatialMeanBackward, Flatten, Unflatten>(node);
}

// Returns whether an operand is a batch of images; others are parameters and statistics.
bool is_image_operand(const Node& node, std::size_t input) {
  if (const auto* norm = as<BatchNorm>(node)) {
    return input == 0 || input >= NormOperandIndices(norm->attributes.scale).mean;
  }
  if (const auto* norm = as<BatchNormBackward>(node)) {
    return input == 0 || input >= norm->index_of_dy();
  }
  if (const auto* conv = as<Conv2d>(node)) {
    return input == 0 || input >= (conv->attributes.bias ? 3U : 2U);
  }
  return input == 0 || as<Conv2dBackwardData>(node) == nullptr;
}

// Returns the op of a slice with so many images: some ops know the shape of their result.
std::shared_ptr<const Op> with_examples(const Node& node, std::int64_t count) {
  const auto resized = [count](Shape shape) {
    shape[0] = count;
    return shape;
  };
  if (const auto* op = as<Conv2dBackwardData>(node)) {
    return std::make_shared<const Conv2dBackwardData>(op->attributes, resized(op->x_shape));
  }
  if (const auto* op = as<MaxPoolBackward>(node)) {
    return std::make_shared<const MaxPoolBackward>(op->window, resized(op->x_shape));
  }
  if (const auto* op = as<AveragePoolBackward>(node)) {
    return std::make_shared<const AveragePoolBackward>(op->window, resized(op->x_shape));
  }
  if (const auto* op = as<SpatialMeanBackward>(node)) {
    return std::make_shared<const SpatialMeanBackward>(resized(op->x_shape));
  }
  if (const auto* op = as<SubsampleBackward>(node)) {
    return std::make_shared<const SubsampleBackward>(op->window, resized(op->x_shape));
  }
  if (const auto* op = as<Unflatten>(node)) {
    return std::make_shared<const Unflatten>(resized(op->image_shape));
  }
  return node.op;
}

// Finds which nodes compute in slices: those of images, from the first one on.
class Images {
 public:
  explicit Images(const Graph& graph) : graph_(graph), is_image_(graph.tensors().size()) {
    for (std::size_t t = 0; t < is_image_.size(); ++t) {
      is_image_[t] = is_batch(graph.tensors()[t]);
    }
    for (const Node& node : graph.nodes()) {
      is_sliced_.push_back(computes_images(node));
      is_sliced_.back() ? mark_results(node) : mark_whole_results(node);
    }
  }

  bool is_sliced(std::size_t node) const { return is_sliced_[node]; }
  std::size_t count() const {
    return static_cast<std::size_t>(std::ranges::count(is_sliced_, true));
  }

 private:
  bool computes_images(const Node& node) const {
    if (!maps_each_image(node) &&
        !is_any_of<Conv2d, Conv2dBackwardData, Conv2dBackwardWeights, BatchNorm, BatchNormBackward>(
            node)) {
      return false;
    }
    if (is_any_of<SpatialMeanBackward, Unflatten>(node)) {
      return true;  // of gradients that the dense layers make for the whole batch
    }
    return std::ranges::any_of(node.inputs, [&](TensorId id) { return is_image_[index_of(id)]; });
  }

  void mark_results(const Node& node) {
    for (std::size_t o = 0; o < node.outputs.size(); ++o) {
      const bool is_norm = is_any_of<BatchNorm, BatchNormBackward>(node);
      const bool is_gated =
          as<BatchNormBackward>(node) != nullptr && as<BatchNormBackward>(node)->passes_gradient();
      is_image_[index_of(node.outputs[o])] =
          as<Conv2dBackwardWeights>(node) == nullptr &&
          (!is_norm || o == 0 || (is_gated && o + 1 == node.outputs.size()));
    }
  }

  // Results of other ops on images, such as dropout, are sliced again behind these.
  void mark_whole_results(const Node& node) {
    for (const TensorId output : node.outputs) {
      const Shape& shape = graph_.info(output).desc.shape;
      is_image_[index_of(output)] = shape.rank() == 4 && !node.inputs.empty() &&
                                    is_image_[index_of(node.inputs[0])] &&
                                    shape[0] == graph_.info(node.inputs[0]).desc.shape[0];
    }
  }

  const Graph& graph_;
  std::vector<bool> is_image_;   // by TensorId
  std::vector<bool> is_sliced_;  // by NodeId
};

class StepSlicer {
 public:
  StepSlicer(const Graph& graph, std::int64_t slices)
      : images_(graph), rewriter_(graph), slices_(slices), parts_(graph.tensors().size()) {}

  Rewritten run() {
    const Graph& old = rewriter_.old();
    for (std::size_t n = 0; n < old.nodes().size(); ++n) {
      const Node& node = old.nodes()[n];
      if (!images_.is_sliced(n)) {
        copy_whole(node);
      } else if (as<BatchNorm>(node) != nullptr) {
        add_norm(node);
      } else if (as<BatchNormBackward>(node) != nullptr) {
        add_norm_backward(node);
      } else {
        pend(node, as<Conv2dBackwardWeights>(node) == nullptr ? Part::images : Part::weights);
      }
    }
    finish_round();
    for (const Output& output : old.outputs()) {
      whole(output.tensor);
    }
    return rewriter_.finish();
  }

 private:
  // The contribution of a node to a round of slices.
  enum class Part : std::uint8_t { images, weights, moments, normalised, sums, input_gradient };
  struct Pending {
    const Node* node = nullptr;
    Part part = Part::images;
  };

  void pend(const Node& node, Part part) {
    check_slices(node);
    pending_.push_back({&node, part});
    // A norm's results by channel are made behind the round.
    if (part == Part::images || part == Part::weights) {
      for (const TensorId output : node.outputs) {
        is_pending_[output] = true;
      }
    } else if (part != Part::moments) {
      is_pending_[part == Part::sums ? node.outputs.back() : node.outputs.front()] = true;
    }
  }

  void check_slices(const Node& node) const {
    const std::int64_t batch = batch_of(node);
    check(slices_ >= 1 && slices_ <= batch,
          "a batch of " + std::to_string(batch) + " has no " + std::to_string(slices_) + " slices");
  }

  std::int64_t batch_of(const Node& node) const {
    return rewriter_.old().info(node.inputs[0]).desc.shape[0];
  }

  // Returns the first image of a slice.
  std::int64_t first(std::int64_t slice, std::int64_t batch) const {
    return slice * batch / slices_;
  }

  std::int64_t count(std::int64_t slice, std::int64_t batch) const {
    return first(slice + 1, batch) - first(slice, batch);
  }

  void copy_whole(const Node& node) {
    for (const TensorId input : node.inputs) {
      whole(input);
    }
    rewriter_.copy(node);
  }

  // Makes sure that the new graph has the whole of a tensor.
  void whole(TensorId id) {
    if (is_pending_.contains(id)) {
      finish_round();
    }
    std::vector<std::optional<Value>>& parts = parts_[index_of(id)];
    if (!parts.empty() && !is_whole_[id]) {
      std::vector<Value> all;
      for (const std::optional<Value>& part : parts) {
        all.push_back(part.value());
      }
      rewriter_.moved(id, concat_batch(all).id);
      is_whole_[id] = true;
    }
  }

  void add_norm(const Node& node) {
    pend(node, Part::moments);
    finish_round();
    const TensorDesc& x = rewriter_.old().info(node.inputs[0]).desc;
    std::vector<double> counts;
    std::vector<Value> moments;
    for (std::int64_t s = 0; s < slices_; ++s) {
      counts.push_back(static_cast<double>(count(s, x.shape[0]) *
                                           (x.shape.elements() / x.shape[0] / x.shape[1])));
      moments.insert(moments.end(), vectors_[s].begin(), vectors_[s].end());
    }
    const std::vector<Value> merged = emit_all(MergeMoments(std::move(counts)), moments);
    rewriter_.moved(node.outputs[1], merged[0].id);
    rewriter_.moved(node.outputs[2], merged[1].id);
    pend(node, Part::normalised);
  }

  void add_norm_backward(const Node& node) {
    pend(node, Part::sums);
    finish_round();
    std::vector<Value> dbeta, dgamma;
    for (const std::vector<Value>& of_slice : vectors_) {
      dbeta.push_back(of_slice[0]);
      dgamma.push_back(of_slice[1]);
    }
    const Value beta_sum = emit_all(Add(), dbeta).front();
    const Value gamma_sum = emit_all(Add(), dgamma).front();
    rewriter_.moved(node.outputs[1], beta_sum.id);
    if (as<BatchNormBackward>(node)->attributes.scale) {
      rewriter_.moved(node.outputs[2], gamma_sum.id);
    }
    sums_[&node] = {beta_sum, gamma_sum};
    pend(node, Part::input_gradient);
  }

  // Runs the pending nodes on one slice after another.
  void finish_round() {
    vectors_.assign(static_cast<std::size_t>(slices_), {});
    gradients_.clear();
    for (std::int64_t i = 0; i < slices_ && !pending_.empty(); ++i) {
      const std::int64_t slice = descends_ ? slices_ - 1 - i : i;
      for (const Pending& one : pending_) {
        emit(one, slice);
      }
    }
    for (const auto& [tensor, sum] : gradients_) {
      rewriter_.moved(tensor, sum.id);
    }
    descends_ = descends_ != !pending_.empty();
    pending_.clear();
    is_pending_.clear();
  }

  void emit(const Pending& one, std::int64_t slice) {
    switch (one.part) {
      case Part::images:
        emit_images(*one.node, slice);
        break;
      case Part::weights:
        emit_weights(*one.node, slice);
        break;
      case Part::moments:
        vectors_[static_cast<std::size_t>(slice)] =
            emit_all(NormMoments(), std::vector<Value>{part(one.node->inputs[0], slice)});
        break;
      case Part::normalised:
        emit_normalised(*one.node, slice);
        break;
      case Part::sums:
        emit_sums(*one.node, slice);
        break;
      case Part::input_gradient:
        emit_input_gradient(*one.node, slice);
        break;
    }
  }

  void emit_images(const Node& node, std::int64_t slice) {
    const std::shared_ptr<const Op> op = with_examples(node, count(slice, batch_of(node)));
    const std::vector<Value> out = rewriter_.graph().append(op, operands(node, slice));
    for (std::size_t o = 0; o < out.size(); ++o) {
      set_part(node.outputs[o], slice, out[o]);
    }
  }

  // Adds the gradient of a slice to those before it.
  void emit_weights(const Node& node, std::int64_t slice) {
    const std::vector<Value> out = rewriter_.graph().append(node.op, operands(node, slice));
    for (std::size_t o = 0; o < out.size(); ++o) {
      const auto found = gradients_.find(node.outputs[o]);
      if (found == gradients_.end()) {
        gradients_.emplace(node.outputs[o], out[o]);
      } else {
        found->second = add(found->second, out[o]);
      }
    }
  }

  void emit_normalised(const Node& node, std::int64_t slice) {
    const BatchNormAttributes& a = as<BatchNorm>(node)->attributes;
    std::vector<Value> in = operands(node, slice);
    const auto at = in.begin() + static_cast<std::ptrdiff_t>(NormOperandIndices(a.scale).mean);
    in.insert(at, {now(node.outputs[1]), now(node.outputs[2])});
    set_part(node.outputs[0], slice, emit_all(BatchNormInference(a), in).front());
  }

  void emit_sums(const Node& node, std::int64_t slice) {
    const auto& norm = *as<BatchNormBackward>(node);
    const std::vector<Value> out =
        emit_all(NormGradientSums(norm.attributes, norm.joined), operands(node, slice));
    vectors_[static_cast<std::size_t>(slice)] = {out[0], out[1]};
    if (norm.passes_gradient()) {
      set_part(node.outputs.back(), slice, out[2]);
    }
  }

  void emit_input_gradient(const Node& node, std::int64_t slice) {
    const auto& norm = *as<BatchNormBackward>(node);
    const TensorDesc& x = rewriter_.old().info(node.inputs[0]).desc;
    const bool is_gated = norm.passes_gradient();
    const NormInputGradient op(norm.attributes,
                               static_cast<double>(x.shape.elements() / x.shape[1]),
                               norm.joined && !is_gated);
    std::vector<Value> in;
    for (std::size_t i = 0; i < norm.index_of_dy(); ++i) {
      in.push_back(operand(node, i, slice));
    }
    const auto& [dbeta, dgamma] = sums_.at(&node);
    in.insert(in.end(), {dbeta, dgamma});
    if (is_gated) {
      in.push_back(part(node.outputs.back(), slice));
    } else {
      for (std::size_t i = norm.index_of_dy(); i < node.inputs.size(); ++i) {
        in.push_back(operand(node, i, slice));
      }
    }
    set_part(node.outputs[0], slice, emit_all(op, in).front());
  }

  std::vector<Value> operands(const Node& node, std::int64_t slice) {
    std::vector<Value> in;
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      in.push_back(operand(node, i, slice));
    }
    return in;
  }

  Value operand(const Node& node, std::size_t input, std::int64_t slice) {
    const TensorId id = node.inputs[input];
    return is_image_operand(node, input) ? part(id, slice) : now(id);
  }

  Value now(TensorId id) { return {&rewriter_.graph(), rewriter_.now(id)}; }

  // Returns a slice of a tensor, copied from the whole where the tensor does not come in slices.
  Value part(TensorId id, std::int64_t slice) {
    std::vector<std::optional<Value>>& parts = parts_[index_of(id)];
    if (parts.empty()) {
      is_whole_[id] = true;
      parts.resize(static_cast<std::size_t>(slices_));
    }
    std::optional<Value>& one = parts[static_cast<std::size_t>(slice)];
    if (!one) {
      const std::int64_t batch = rewriter_.old().info(id).desc.shape[0];
      one = slice_batch(now(id), first(slice, batch), count(slice, batch));
    }
    return *one;
  }

  void set_part(TensorId id, std::int64_t slice, Value value) {
    std::vector<std::optional<Value>>& parts = parts_[index_of(id)];
    parts.resize(static_cast<std::size_t>(slices_));
    parts[static_cast<std::size_t>(slice)] = value;
  }

  Images images_;
  Rewriter rewriter_;
  std::int64_t slices_;
  std::vector<std::vector<std::optional<Value>>> parts_;  // by old TensorId, by slice
  std::map<TensorId, bool> is_whole_;                     // old tensors with slices
  std::vector<Pending> pending_;                          // of the next round
  std::map<TensorId, bool> is_pending_;                   // old tensors that it makes
  bool descends_ = false;                    // the next round begins with the last slice
  std::vector<std::vector<Value>> vectors_;  // moments or sums by slice, of the last round
  std::map<TensorId, Value> gradients_;      // of weights, by old tensor
  std::map<const Node*, std::pair<Value, Value>> sums_;  // of old norms: dbeta, dgamma
};

}  // namespace

bool can_slice_norms(const Graph& graph, const KernelTable& table, Layout image) {
  bool has_norm = false;
  for (const Node& node : graph.nodes()) {
    if (const auto* norm = as<BatchNorm>(node)) {
      has_norm = true;
      std::vector<TensorDesc> in;
      for (const TensorId input : node.inputs) {
        in.push_back(graph.info(input).desc);
      }
      if (runs(table, *norm, in, image) && !runs(table, NormMoments(), {in[0]}, image)) {
        return false;
      }
    }
  }
  return has_norm;
}

Slicing norm_slicing_of(const Graph& forward, std::int64_t slices) {
  return {.slices = slices,
          .sliceable = Images(forward).count(),
          .forward_nodes = forward.nodes().size(),
          .norms = true};
}

Rewritten slice_norms(const Graph& graph, std::int64_t slices) {
  return slices == 1 ? copy_of(graph) : StepSlicer(graph, slices).run();
}

}  // namespace cnn::layers
