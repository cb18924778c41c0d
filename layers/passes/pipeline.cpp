#include "layers/passes/pipeline.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "layers/batch_norm.h"
#include "layers/fused_conv.h"
#include "layers/passes/autodiff.h"
#include "layers/passes/commute_relu_pool.h"
#include "layers/passes/concat_in_place.h"
#include "layers/passes/copies.h"
#include "layers/passes/freeze.h"
#include "layers/passes/fuse.h"
#include "layers/passes/fuse_conv.h"
#include "layers/passes/layout.h"
#include "layers/passes/node_names.h"
#include "layers/passes/rewriter.h"
#include "layers/passes/slice_batch.h"
#include "layers/passes/slice_dense.h"
#include "layers/passes/slice_norms.h"
#include "layers/passes/slice_rows.h"
#include "layers/passes/timed_fusion.h"
#include "runtime/error.h"

namespace cnn::layers {
namespace {

// Returns the second of two rewrites in a row, with the tensors of the first one's old graph.
Rewritten joined(const Rewritten& first, Rewritten second) {
  std::vector<std::optional<TensorId>> was;
  for (const std::optional<TensorId>& id : first.was) {
    was.push_back(id ? second.was[index_of(*id)] : std::nullopt);
  }
  second.was = std::move(was);
  return second;
}

template <class O>
std::size_t count(const Graph& graph) {
  return static_cast<std::size_t>(std::ranges::count_if(
      graph.nodes(), [](const Node& node) { return as<O>(node) != nullptr; }));
}

// Fuses ops of the forward and backward pass of a training graph.
std::shared_ptr<Graph> fuse_across(std::shared_ptr<Graph> graph, const KernelTable& table,
                                   const PipelineOptions& options, const PlainNorms& plain) {
  if (options.fusion == Fusion::conv) {
    graph = fuse_convolutions(*graph, table, options.layout, plain).graph;
  }
  graph = commute_relu_pool(*graph).graph;
  graph = fuse_gradient_adds(*graph, options.max_fused_grad_add_bytes).graph;
  return graph;
}

// Gates of norms in slices read the output itself: it is there for the next convolution.
std::shared_ptr<Graph> slice_or_mask(std::shared_ptr<Graph> graph, const KernelTable& table,
                                     const PipelineOptions& options, bool slices_norms) {
  if (slices_norms) {
    graph = slice_norms(*graph, options.slices).graph;
  }
  const bool masks = options.fusion != Fusion::none;
  return masks ? store_relu_masks(*graph, table, options.layout).graph : graph;
}

PlainNorms choose_plain_norms(const std::shared_ptr<Graph>& graph, const KernelTable& table,
                              const PipelineOptions& options) {
  if (options.fusion != Fusion::conv || !options.seconds) {
    return {};
  }
  std::vector<NodeIndex> fusible;
  for (const auto& [node, norm] : plan_conv_fusion(*graph, table, options.layout).norms) {
    if (norm.form != NormPlan::Form::kept) {
      fusible.push_back(node);
    }
  }
  return norms_faster_plain(
      *graph, fusible,
      [&](const PlainNorms& plain) {
        const auto fused =
            slice_or_mask(fuse_across(graph, table, options, plain), table, options, false);
        return assign_layouts(*fused, table, options.layout, options.fixed).graph;
      },
      options.seconds);
}

// Returns the forward graph with its images in slices of their rows, as far as it allows that.
Rewritten row_sliced(const Graph& graph, std::int64_t slices, Slicing& slicing) {
  slicing.row_slices = slices;
  const std::optional<TensorId> cut =
      count<BatchNorm>(graph) == 0 ? find_row_cut(graph) : std::nullopt;
  if (!cut) {
    return copy_of(graph);
  }
  slicing.row_sliceable = nodes_before_row_cut(graph, *cut);
  slicing.rows = graph.info(*cut).desc.shape[2];
  return slice_rows(graph, *cut, slicing.row_slices_made());
}

// Returns the forward graph with its batch and its images in slices, as far as it allows that.
// Norms in training follow with their gradients.
Rewritten sliced(const Graph& graph, const PipelineOptions& options, bool slices_norms,
                 Slicing& slicing) {
  if (slices_norms) {
    slicing = norm_slicing_of(graph, options.slices);
    slicing.row_slices = options.row_slices;
    return copy_of(graph);
  }
  slicing = slicing_of(graph, find_cut(graph), options.slices);
  Rewritten rows = row_sliced(graph, options.row_slices, slicing);
  return slicing.is_sliced()
             ? joined(rows, slice_batch(*rows.graph, find_cut(*rows.graph).value(), options.slices))
             : rows;
}

// Returns the step with dense layers in slices, or as it is.
std::shared_ptr<Graph> dense_sliced(std::shared_ptr<Graph> graph, const PipelineOptions& options,
                                    Slicing& slicing) {
  slicing.dense_slices = options.dense_slices;
  if (!options.is_on_host) {
    return graph;
  }
  // Whole layers are counted too: a refusal names slices only where they would help.
  const SlicedDense sliced =
      slice_dense(*graph, options.is_on_host, std::max<std::int64_t>(options.dense_slices, 2));
  slicing.dense_sliceable = sliced.weights;
  return slicing.is_dense_sliced() ? sliced.rewritten.graph : graph;
}

// Appends the training step to the forward graph, and fuses across both.
std::shared_ptr<Graph> trained(std::shared_ptr<Graph> graph, const KernelTable& table,
                               const PipelineOptions& options, bool slices_norms,
                               PipelineResult& result) {
  append_training(*graph, {graph.get(), options.loss.value()}, options.training);
  if (options.fusion != Fusion::none) {
    const std::size_t norms = count<BatchNorm>(*graph);
    const PlainNorms plain = choose_plain_norms(graph, table, options);
    graph = fuse_across(graph, table, options, plain);
    result.norms.plain = count<BatchNorm>(*graph);
    result.norms.fused = norms - result.norms.plain;
    result.norms.faster_plain = plain.size();
  }
  return slice_or_mask(graph, table, options, slices_norms);
}

}  // namespace

std::string_view name_of(Fusion fusion) {
  constexpr std::string_view names[] = {"none", "bn", "conv"};
  return names[static_cast<std::size_t>(fusion)];
}

void append_training(Graph& graph, Value loss, const TrainingOptions& options) {
  const std::vector<Value> parameters = parameters_of(graph);
  const Value seed = loss_seed(graph, options.optimizer);
  std::vector<Value> made;
  for (const std::optional<Value>& gradient : gradients(loss, parameters, seed)) {
    check(gradient.has_value(), "the loss does not depend on every parameter of the model");
    made.push_back(*gradient);
  }
  if (options.on_gradients) {
    options.on_gradients(parameters, made);
  }
  append_moving_averages(graph);
  graph.output("l2", append_update(graph, parameters, made, options.optimizer));
}

PipelineResult run_pipeline(const Graph& forward, const KernelTable& table,
                            const PipelineOptions& request) {
  const bool slices_norms =
      request.loss && request.slices > 1 && can_slice_norms(forward, table, request.layout);
  PipelineOptions options = request;
  if (slices_norms && options.fusion == Fusion::conv) {
    options.fusion = Fusion::bn;  // convolutions with norms around them need the whole batch
  }
  const bool fuses = options.fusion != Fusion::none;
  PipelineResult result{.graphs = {}, .fusion = options.fusion, .norms = {}, .slicing = {}};
  const Rewritten start = fuses ? fuse_activations(forward) : copy_of(forward);
  // Folds before slicing, so that all slices share the folded weights.
  const bool folds = fuses && !options.loss;
  const Rewritten slices = sliced(folds ? *fold_batch_norms(*start.graph).graph : *start.graph,
                                  options, slices_norms, result.slicing);
  std::shared_ptr<Graph> graph = slices.graph;
  if (options.loss) {
    const TensorId loss_of_start = start.was[index_of(*options.loss)].value();
    options.loss = slices.was[index_of(loss_of_start)].value();
    graph = trained(graph, table, options, slices_norms, result);
  }
  if (options.fusion == Fusion::conv && count<FusedConv>(*graph) == 0) {
    result.fusion = Fusion::bn;
  }
  graph = dense_sliced(std::move(graph), options, result.slicing);
  graph = assign_layouts(*graph, table, options.layout, options.fixed).graph;
  result.graphs.step = graph;
  if (options.loss) {
    result.graphs = keep_copies(*graph, table);
  } else if (options.fixed.empty()) {
    result.graphs = freeze_constants(*graph);
  }
  if (options.is_on_host) {
    result.graphs.step =
        place_variables_on_host(*result.graphs.step, table, options.is_on_host).graph;
  }
  result.graphs.step = name_by_nodes(*result.graphs.step).graph;
  if (fuses) {
    result.graphs.step = concat_in_place(*result.graphs.step, table).graph;
  }
  return result;
}

}  // namespace cnn::layers
