#include "layers/passes/slice_rows.h"

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "layers/activation.h"
#include "layers/batch_norm.h"
#include "layers/concat.h"
#include "layers/conv.h"
#include "layers/elementwise.h"
#include "layers/lrn.h"
#include "layers/operands.h"
#include "layers/passes/image_region.h"
#include "layers/passes/rewriter.h"
#include "layers/pool.h"
#include "layers/row_slice.h"
#include "runtime/error.h"

namespace cnn::layers {
namespace {

// Returns the window that a node moves over its first operand, or nullptr.
const Window* window_of(const Node& node) {
  if (const auto* conv = as<Conv2d>(node)) {
    return &conv->attributes.window;
  }
  if (const auto* pool = as<MaxPool>(node)) {
    return &pool->window;
  }
  const auto* pool = as<AveragePool>(node);
  return pool == nullptr ? nullptr : &pool->window;
}

std::shared_ptr<const Op> with_window(const Node& node, const Window& window) {
  if (const auto* conv = as<Conv2d>(node)) {
    ConvAttributes attributes = conv->attributes;
    attributes.window = window;
    return std::make_shared<const Conv2d>(attributes);
  }
  if (const auto* pool = as<MaxPool>(node)) {
    return std::make_shared<const MaxPool>(window, pool->indices);
  }
  return std::make_shared<const AveragePool>(window);
}

// Returns whether each row of the result depends on a few rows of the operands.
bool maps_rows(const Node& node) {
  if (const Window* window = window_of(node)) {
    const auto is_part = [&](std::int64_t pad) { return pad >= 0 && pad < window->kernel_h; };
    return is_part(window->pad_top) && is_part(window->pad_bottom);  // no window is padding alone
  }
  return is_any_of<Relu, Lrn, Concat, Add, Convert, Normalise, PadChannels, BatchNormInference>(
      node);
}

SliceKinds row_kinds_of(const Graph& graph) { return {graph, maps_rows}; }

// Rows [begin, end) of the image that outputs [rows.begin, rows.end) of a window read, before they
// are clipped to the image.
Range reach_of(const Window& window, const Range& rows) {
  return {rows.begin * window.stride_h - window.pad_top,
          (rows.end - 1) * window.stride_h - window.pad_top + window.kernel_h};
}

Range clipped(const Range& rows, std::int64_t height) {
  return {std::max<std::int64_t>(rows.begin, 0), std::min(rows.end, height)};
}

// Returns the outputs that a window of stride 1 can compute from these rows of an image.
Range outputs_of(const Window& window, const Range& rows, std::int64_t height) {
  return {rows.begin == 0 ? 0 : rows.begin + window.pad_top,
          rows.end == height ? window.output_h(height)
                             : rows.end + window.pad_top - window.kernel_h + 1};
}

// Repeats nodes for one slice after another.
class RowSlicer {
 public:
  RowSlicer(Rewriter& rewriter, const SliceKinds& kinds, const std::vector<bool>& region)
      : rewriter_(rewriter), kinds_(kinds), region_(region) {}

  // Returns these rows of `cut`.
  Value slice(TensorId cut, const Range& rows) {
    needed_.clear();
    made_.clear();
    taken_.clear();
    need(cut, rows);
    const auto nodes = rewriter_.old().nodes();
    for (std::size_t n = nodes.size(); n-- > 0;) {
      if (region_[n]) {
        need_operands(nodes[n]);
      }
    }
    for (std::size_t n = 0; n < nodes.size(); ++n) {
      if (region_[n]) {
        repeat(nodes[n]);
      }
    }
    return take(cut, rows);
  }

 private:
  struct Made {
    Value value;
    Range rows;
  };

  std::int64_t height_of(TensorId id) const { return rewriter_.old().info(id).desc.shape[2]; }

  void need(TensorId id, const Range& rows) {
    const auto [found, is_new] = needed_.emplace(id, rows);
    if (!is_new) {
      found->second = {std::min(found->second.begin, rows.begin),
                       std::max(found->second.end, rows.end)};
    }
  }

  void need_operands(const Node& node) {
    const Range rows = needed_.at(node.outputs.front());
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      if (kinds_[node.inputs[i]] == SliceKind::sliced) {
        need(node.inputs[i], rows_read(node, i, rows));
      }
    }
  }

  // Returns the rows of an operand that a node reads for these rows of its result.
  Range rows_read(const Node& node, std::size_t input, const Range& rows) const {
    const Window* window = window_of(node);
    return window != nullptr && input == 0
               ? clipped(reach_of(*window, rows), height_of(node.inputs[0]))
               : rows;
  }

  // Returns the rows that a node computes: where it can, as many as its only image has, since a
  // copy without the others would take more memory than they do.
  Range rows_computed(const Node& node) const {
    const Window* window = window_of(node);
    const auto images = std::ranges::count_if(
        node.inputs, [&](TensorId id) { return kinds_[id] == SliceKind::sliced; });
    const auto image = made_.find(node.inputs.front());
    if (images != 1 || image == made_.end() || (window != nullptr && window->stride_h != 1)) {
      return needed_.at(node.outputs.front());
    }
    return window != nullptr
               ? outputs_of(*window, image->second.rows, height_of(node.inputs.front()))
               : image->second.rows;
  }

  void repeat(const Node& node) {
    const Range rows = rows_computed(node);
    std::vector<Value> in;
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      const TensorId id = node.inputs[i];
      in.push_back(kinds_[id] == SliceKind::sliced ? take(id, rows_read(node, i, rows))
                                                   : Value{&rewriter_.graph(), rewriter_.now(id)});
    }
    const std::vector<Value> out = rewriter_.graph().append(op_for(node, rows), in);
    for (std::size_t i = 0; i < out.size(); ++i) {
      made_.emplace(node.outputs[i], Made{out[i], rows});
    }
  }

  std::shared_ptr<const Op> op_for(const Node& node, const Range& rows) const {
    const Window* window = window_of(node);
    if (window == nullptr) {
      return node.op;
    }
    const Range reach = reach_of(*window, rows);
    Window here = *window;
    here.pad_top = std::max<std::int64_t>(-reach.begin, 0);
    here.pad_bottom = std::max<std::int64_t>(reach.end - height_of(node.inputs[0]), 0);
    return with_window(node, here);
  }

  // Returns these rows of an old tensor, copied unless they are all that there are.
  Value take(TensorId id, const Range& rows) {
    const auto made = made_.find(id);
    const Made all = made != made_.end()
                         ? made->second
                         : Made{{&rewriter_.graph(), rewriter_.now(id)}, {0, height_of(id)}};
    if (all.rows.begin == rows.begin && all.rows.end == rows.end) {
      return all.value;
    }
    std::optional<Value>& taken = taken_[{id, rows.begin, rows.end}];
    if (!taken) {
      taken = slice_rows(all.value, rows.begin - all.rows.begin, rows.end - rows.begin);
    }
    return *taken;
  }

  Rewriter& rewriter_;
  const SliceKinds& kinds_;
  const std::vector<bool>& region_;
  // These hold the present slice only, by old TensorId.
  std::map<TensorId, Range> needed_;
  std::map<TensorId, Made> made_;
  std::map<std::tuple<TensorId, std::int64_t, std::int64_t>, std::optional<Value>> taken_;
};

}  // namespace

std::optional<TensorId> find_row_cut(const Graph& graph) {
  return find_cut(graph, row_kinds_of(graph));
}

std::size_t nodes_before_row_cut(const Graph& graph, TensorId cut) {
  return static_cast<std::size_t>(
      std::ranges::count(region_of(graph, row_kinds_of(graph), cut), true));
}

Rewritten slice_rows(const Graph& graph, TensorId cut, std::int64_t slices) {
  const std::int64_t height = graph.info(cut).desc.shape[2];
  check(slices >= 1 && slices <= height,
        std::to_string(height) + " rows have no " + std::to_string(slices) + " slices");
  if (slices == 1) {
    return copy_of(graph);
  }
  const SliceKinds kinds = row_kinds_of(graph);
  const std::vector<bool> region = region_of(graph, kinds, cut);
  return replace_region(graph, region, cut, [&](Rewriter& rewriter) {
    RowSlicer slicer(rewriter, kinds, region);
    std::vector<Value> parts;
    for (std::int64_t s = 0; s < slices; ++s) {
      parts.push_back(slicer.slice(cut, {s * height / slices, (s + 1) * height / slices}));
    }
    return concat_rows(parts);
  });
}

}  // namespace cnn::layers
