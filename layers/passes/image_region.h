#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "layers/passes/rewriter.h"
#include "runtime/graph.h"

// Finds the part of a forward graph that can compute its images in slices, and replaces it.
namespace cnn::layers {

// Returns whether a tensor holds images from outside the graph: the batch of a step, or the
// synthetic batch that stays on the device.
bool is_batch(const TensorInfo& info);

// A tensor is shared where it depends on variables only, so that all slices read it whole; sliced
// where each of its slices depends on slices from outside; and whole in all other cases.
enum class SliceKind : std::uint8_t { shared, sliced, whole };

// The kinds of all tensors of a graph.
class SliceKinds {
 public:
  // can_slice: whether a node computes slices of its outputs from slices of its images.
  SliceKinds(const Graph& graph, const std::function<bool(const Node&)>& can_slice);

  SliceKind operator[](TensorId id) const { return kinds_[index_of(id)]; }
  bool is_sliced(const Node& node) const {
    return !node.outputs.empty() && (*this)[node.outputs.front()] == SliceKind::sliced;
  }

 private:
  std::vector<SliceKind> kinds_;  // by TensorId
};

// Returns, by NodeId, which nodes compute `cut` from the images.
std::vector<bool> region_of(const Graph& graph, const SliceKinds& kinds, TensorId cut);

// Returns the last sliced tensor whose region makes no other tensor that later nodes or outputs of
// the graph read; nothing if there is none.
std::optional<TensorId> find_cut(const Graph& graph, const SliceKinds& kinds);

// Returns the graph without the nodes of this region, which computes `cut`. `make` appends others
// to the rewriter's graph and returns their value of `cut`.
Rewritten replace_region(const Graph& graph, const std::vector<bool>& region, TensorId cut,
                         const std::function<Value(Rewriter&)>& make);

}  // namespace cnn::layers
