#include "layers/passes/pipeline.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "layers/batch_norm.h"
#include "layers/fused_conv.h"
#include "layers/passes/autodiff.h"
#include "layers/passes/concat_in_place.h"
#include "layers/passes/copies.h"
#include "layers/passes/freeze.h"
#include "layers/passes/fuse.h"
#include "layers/passes/fuse_conv.h"
#include "layers/passes/layout.h"
#include "layers/passes/node_names.h"
#include "layers/passes/pooled_gates.h"
#include "layers/passes/rewriter.h"
#include "runtime/error.h"

namespace cnn::layers {
namespace {

bool has_fused_convolutions(const Graph& graph) {
  return std::ranges::any_of(graph.nodes(),
                             [](const Node& node) { return as<FusedConv>(node) != nullptr; });
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
                            const PipelineOptions& options) {
  const bool fuses = options.fusion != Fusion::none;
  const Rewritten start = fuses ? fuse_activations(forward) : copy_of(forward);
  std::shared_ptr<Graph> graph = start.graph;
  if (options.loss) {
    const Value loss{graph.get(), start.was[index_of(*options.loss)].value()};
    append_training(*graph, loss, options.training);
    if (options.fusion == Fusion::conv) {
      graph = fuse_convolutions(*graph, table, options.layout).graph;
    }
    if (fuses) {
      graph = gate_pooled_gradients(*graph).graph;
      graph = join_gradients(*graph, options.largest_join).graph;
      graph = mask_gates(*graph, table, options.layout).graph;
    }
  } else if (fuses) {
    graph = fold_batch_norms(*graph).graph;
  }
  PipelineResult result{.graphs = {}, .fusion = options.fusion};
  if (options.fusion == Fusion::conv && !has_fused_convolutions(*graph)) {
    result.fusion = Fusion::bn;
  }
  graph = assign_layouts(*graph, table, options.layout, options.fixed).graph;
  result.graphs.step = graph;
  if (options.loss) {
    result.graphs = keep_copies(*graph, table);
  } else if (options.fixed.empty()) {
    result.graphs = freeze_constants(*graph);
  }
  result.graphs.step = name_by_nodes(*result.graphs.step).graph;
  if (fuses) {
    result.graphs.step = concat_in_place(*result.graphs.step, table).graph;
  }
  return result;
}

}  // namespace cnn::layers
