#include "layers/passes/slice_batch.h"

#include <algorithm>
#include <cstdint>
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
#include "layers/passes/image_region.h"
#include "layers/passes/rewriter.h"
#include "layers/pool.h"
#include "layers/row_slice.h"
#include "layers/subsample.h"
#include "runtime/error.h"

namespace cnn::layers {

namespace {

// Returns whether image n of each output depends only on image n of the inputs and on parameters.
// Dropout does not: its mask is a function of an element's place in the whole batch.
bool is_per_image(const Node& node) {
  return is_any_of<Conv2d, Relu, MaxPool, AveragePool, Lrn, WithinLrn, Concat, Add, Convert,
                   Normalise, PadChannels, Subsample, SpatialMean, Flatten, BatchNormInference,
                   SliceRows, ConcatRows>(node);
}

SliceKinds kinds_of(const Graph& graph) { return {graph, is_per_image}; }

// Repeats nodes for one slice after another.
class Slicer {
 public:
  Slicer(Rewriter& rewriter, const SliceKinds& kinds, const std::vector<bool>& region)
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
    return kinds_[id] == SliceKind::sliced
               ? made_.emplace(id, slice_batch(whole, first, count)).first->second
               : whole;
  }

  Rewriter& rewriter_;
  const SliceKinds& kinds_;
  const std::vector<bool>& region_;
  std::map<TensorId, Value> made_;  // of the present slice, by old TensorId
};

}  // namespace

std::optional<TensorId> find_cut(const Graph& graph) { return find_cut(graph, kinds_of(graph)); }

Slicing slicing_of(const Graph& graph, std::optional<TensorId> cut, std::int64_t slices) {
  Slicing slicing{.slices = slices, .forward_nodes = graph.nodes().size()};
  if (cut) {
    slicing.sliceable =
        static_cast<std::size_t>(std::ranges::count(region_of(graph, kinds_of(graph), *cut), true));
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
  const SliceKinds kinds = kinds_of(graph);
  const std::vector<bool> region = region_of(graph, kinds, cut);
  return replace_region(graph, region, cut, [&](Rewriter& rewriter) {
    Slicer slicer(rewriter, kinds, region);
    std::vector<Value> parts;
    for (std::int64_t s = 0; s < slices; ++s) {
      const std::int64_t first = s * batch / slices;
      parts.push_back(slicer.slice(cut, first, (s + 1) * batch / slices - first));
    }
    return concat_batch(parts);
  });
}

}  // namespace cnn::layers
