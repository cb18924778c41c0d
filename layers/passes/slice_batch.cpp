#include "layers/passes/slice_batch.h"

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "layers/activation.h"
#include "layers/batch_norm.h"
#include "layers/batch_slice.h"
#include "layers/concat.h"
#include "layers/conv.h"
#include "layers/dense.h"
#include "layers/elementwise.h"
#include "layers/lrn.h"
#include "layers/passes/rewriter.h"
#include "layers/pool.h"
#include "layers/subsample.h"
#include "runtime/error.h"

namespace cnn::layers {

bool is_batch(const TensorInfo& info) {
  const bool is_synthetic = info.role == Role::state && !info.saved;
  return info.desc.shape.rank() == 4 && (info.role == Role::input || is_synthetic);
}

namespace {

// Returns whether image n of each output depends only on image n of the inputs and on parameters.
// Dropout does not: its mask is a function of an element's place in the whole batch.
bool is_per_image(const Node& node) {
  return is_any_of<Conv2d, Relu, MaxPool, AveragePool, Lrn, WithinLrn, Concat, Add, Convert,
                   Normalise, PadChannels, Subsample, SpatialMean, Flatten, BatchNormInference>(
      node);
}

// A tensor is shared where it depends on variables only, so that all slices read it whole; sliced
// where each of its images depends on one image from outside; and whole in all other cases.
enum class Kind : std::uint8_t { shared, sliced, whole };

class Kinds {
 public:
  explicit Kinds(const Graph& graph) {
    for (const TensorInfo& info : graph.tensors()) {
      const bool is_variable = info.role != Role::input && info.role != Role::activation;
      kinds_.push_back(is_batch(info) ? Kind::sliced : is_variable ? Kind::shared : Kind::whole);
    }
    for (const Node& node : graph.nodes()) {
      const Kind kind = kind_of(node);
      for (const TensorId output : node.outputs) {
        kinds_[index_of(output)] = kind;
      }
    }
  }

  Kind operator[](TensorId id) const { return kinds_[index_of(id)]; }
  bool is_sliced(const Node& node) const {
    return !node.outputs.empty() && (*this)[node.outputs.front()] == Kind::sliced;
  }

 private:
  Kind kind_of(const Node& node) const {
    const auto all = [&](auto accepts) { return std::ranges::all_of(node.inputs, accepts); };
    if (!node.inputs.empty() && all([&](TensorId id) { return (*this)[id] == Kind::shared; })) {
      return Kind::shared;
    }
    const bool is_sliced = is_per_image(node) && !node.inputs.empty() &&
                           (*this)[node.inputs.front()] == Kind::sliced &&
                           all([&](TensorId id) { return (*this)[id] != Kind::whole; });
    return is_sliced ? Kind::sliced : Kind::whole;
  }

  std::vector<Kind> kinds_;  // by TensorId
};

// Returns, by NodeId, which nodes compute `cut` from the images.
std::vector<bool> region_of(const Graph& graph, const Kinds& kinds, TensorId cut) {
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
      if (kinds[input] == Kind::sliced) {
        open.push_back(input);
      }
    }
  }
  return region;
}

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

// Repeats nodes for one slice after another.
class Slicer {
 public:
  Slicer(Rewriter& rewriter, const Kinds& kinds, const std::vector<bool>& region)
      : rewriter_(rewriter), kinds_(kinds), region_(region) {}

  // Returns the slice of `cut` that images [first, first + count) make.
  Value slice(TensorId cut, std::int64_t first, std::int64_t count) {
    made_.clear();
    const Graph& old = rewriter_.old();
    for (std::size_t n = 0; n < region_.size(); ++n) {
      if (region_[n]) {
        repeat(old.nodes()[n], first, count);
      }
    }
    return made_.at(cut);
  }

 private:
  void repeat(const Node& node, std::int64_t first, std::int64_t count) {
    std::vector<Value> in;
    for (const TensorId input : node.inputs) {
      in.push_back(operand(input, first, count));
    }
    const std::vector<Value> out = rewriter_.graph().append(node.op, in);
    for (std::size_t i = 0; i < out.size(); ++i) {
      made_.emplace(node.outputs[i], out[i]);
    }
  }

  Value operand(TensorId id, std::int64_t first, std::int64_t count) {
    if (const auto found = made_.find(id); found != made_.end()) {
      return found->second;
    }
    const Value whole{&rewriter_.graph(), rewriter_.now(id)};
    return kinds_[id] == Kind::sliced
               ? made_.emplace(id, slice_batch(whole, first, count)).first->second
               : whole;
  }

  Rewriter& rewriter_;
  const Kinds& kinds_;
  const std::vector<bool>& region_;
  std::map<TensorId, Value> made_;  // of the present slice, by old TensorId
};

}  // namespace

std::optional<TensorId> find_cut(const Graph& graph) {
  const Kinds kinds(graph);
  for (std::size_t n = graph.nodes().size(); n-- > 0;) {
    const Node& node = graph.nodes()[n];
    if (kinds.is_sliced(node) &&
        is_alone(graph, region_of(graph, kinds, node.outputs.front()), node.outputs.front())) {
      return node.outputs.front();
    }
  }
  return std::nullopt;
}

Slicing slicing_of(const Graph& graph, std::optional<TensorId> cut, std::int64_t slices) {
  Slicing slicing{.slices = slices, .forward_nodes = graph.nodes().size()};
  if (cut) {
    slicing.sliceable =
        static_cast<std::size_t>(std::ranges::count(region_of(graph, Kinds(graph), *cut), true));
  }
  return slicing;
}

Rewritten slice_batch(const Graph& graph, TensorId cut, std::int64_t slices) {
  const std::int64_t batch = graph.info(cut).desc.shape[0];
  check(slices >= 1 && slices <= batch,
        "a batch of " + std::to_string(batch) + " has no " + std::to_string(slices) + " slices");
  if (slices == 1) {
    return copy_of(graph);
  }
  const Kinds kinds(graph);
  const std::vector<bool> region = region_of(graph, kinds, cut);
  Rewriter rewriter(graph);
  Slicer slicer(rewriter, kinds, region);
  for (std::size_t n = 0; n < region.size(); ++n) {
    if (!region[n]) {
      rewriter.copy(graph.nodes()[n]);
    } else if (graph.producer(cut) == NodeId{static_cast<std::uint32_t>(n)}) {
      std::vector<Value> parts;
      for (std::int64_t s = 0; s < slices; ++s) {
        const std::int64_t first = s * batch / slices;
        parts.push_back(slicer.slice(cut, first, (s + 1) * batch / slices - first));
      }
      rewriter.moved(cut, concat_batch(parts).id);
    }
  }
  return rewriter.finish();
}

}  // namespace cnn::layers
