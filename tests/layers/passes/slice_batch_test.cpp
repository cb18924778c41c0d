#include "layers/passes/slice_batch.h"

#include <algorithm>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <string>

#include "layers/activation.h"
#include "layers/batch_norm.h"
#include "layers/concat.h"
#include "layers/conv.h"
#include "layers/dense.h"
#include "layers/dropout.h"
#include "layers/elementwise.h"
#include "layers/lrn.h"
#include "layers/operands.h"
#include "layers/passes/autodiff.h"
#include "layers/passes/fuse.h"
#include "layers/pool.h"
#include "runtime/error.h"
#include "tests/layers/passes/sliced_graph.h"
#include "tests/support/numeric.h"

namespace cnn::layers {
namespace {

using testing::ElementsAre;
using tests::op_of;
using tests::Values;
using tests::values_of;

Value images(Graph& graph, std::int64_t batch) {
  return graph.input("x", described({batch, 3, 9, 9}, DataType::f32));
}

// Returns a network of convolutions, two branches that join, norms across channels, a pool and a
// dense layer with dropout.
Value network(Value x) {
  const Value y = lrn(conv(x, {.filters = 5, .kernel = 3}), {.radius = 2});
  const Value branches[] = {conv(y, {.filters = 4}), conv(y, {.filters = 3, .kernel = 3})};
  const Value z = max_pool(concat(branches), {.kernel = 3, .stride = 2});
  return dense(dropout(flatten(relu(add(z, z))), 0.5), {.units = 6, .relu = false});
}

std::size_t count(const Graph& graph, std::string_view op) {
  return static_cast<std::size_t>(std::ranges::count_if(
      graph.nodes(), [op](const Node& node) { return node.op->name() == op; }));
}

Values sliced_values(std::int64_t batch, std::int64_t slices) {
  Graph graph;
  const Value y = network(images(graph, batch));
  const Rewritten rewritten = slice_batch(graph, find_cut(graph).value(), slices);
  return values_of(*rewritten.graph,
                   {rewritten.graph.get(), rewritten.was[index_of(y.id)].value()});
}

TEST(FindCut, IsTheLastTensorThatEachImageMakesAlone) {
  Graph graph;
  network(images(graph, 4));
  EXPECT_EQ(op_of(graph, find_cut(graph).value()), "flatten");
}

TEST(FindCut, EndsAtTheFirstNormOfATrainedBatch) {
  Graph graph;
  const Value y = conv(images(graph, 4), {.filters = 5, .relu = false});
  conv(relu(batch_norm(y, {})), {.filters = 4});
  EXPECT_EQ(op_of(graph, find_cut(graph).value()), "conv");
  EXPECT_EQ(slicing_of(graph, find_cut(graph), 4).sliceable, 1);
  EXPECT_FALSE(slicing_of(graph, find_cut(graph), 4).is_worthwhile());
}

TEST(FindCut, PassesNormsWhoseStatisticsAreGiven) {
  Graph graph({.training = false});
  const Value y = conv(images(graph, 4), {.filters = 5, .relu = false});
  spatial_mean(relu(batch_norm(y, {})));
  EXPECT_EQ(op_of(graph, find_cut(graph).value()), "spatial_mean");
}

TEST(FindCut, StandsBeforeWhatIsReadBehindIt) {
  Graph graph;
  const Value y = conv(images(graph, 4), {.filters = 3, .relu = false});
  const Value z = relu(y);
  dense(flatten(z), {.units = 2});
  graph.output("y", y);  // an output needs the whole tensor
  EXPECT_EQ(find_cut(graph), y.id);
}

TEST(FindCut, IsNoneWhereNothingReadsImages) {
  Graph graph;
  relu(graph.input("row", described({4, 3}, DataType::f32)));
  EXPECT_FALSE(find_cut(graph));
}

TEST(SliceBatch, RepeatsNodesForEachSliceOneSliceAfterAnother) {
  Graph graph;
  dense(flatten(conv(images(graph, 5), {.filters = 2, .relu = false})), {.units = 3});
  const Rewritten sliced = slice_batch(graph, find_cut(graph).value(), 2);
  std::vector<std::string> ops;
  for (const Node& node : sliced.graph->nodes()) {
    ops.emplace_back(node.op->name());
  }
  EXPECT_THAT(ops, ElementsAre("slice_batch", "conv", "flatten", "slice_batch", "conv", "flatten",
                               "concat_batch", "dense", "relu"));
  const auto shape = [&](std::size_t node) {
    return sliced.graph->info(sliced.graph->nodes()[node].outputs[0]).desc.shape;
  };
  EXPECT_EQ(shape(1), Shape({2, 2, 9, 9}));
  EXPECT_EQ(shape(4), Shape({3, 2, 9, 9}));
  EXPECT_EQ(shape(6), Shape({5, 162}));
}

TEST(SliceBatch, SharesParametersAndKeepsNamesOfVariables) {
  Graph graph;
  network(images(graph, 6));
  const Rewritten sliced = slice_batch(graph, find_cut(graph).value(), 3);
  const auto persistent = [](const Graph& graph) {
    std::vector<std::string> names;
    for (const TensorInfo& info : graph.tensors()) {
      if (info.role != Role::activation) {
        names.push_back(info.name);
      }
    }
    return names;
  };
  EXPECT_EQ(persistent(*sliced.graph), persistent(graph));
  EXPECT_EQ(count(*sliced.graph, "conv"), 3 * count(graph, "conv"));
  EXPECT_EQ(count(*sliced.graph, "dense"), 1);
  EXPECT_EQ(count(*sliced.graph, "dropout"), 1);
}

TEST(SliceBatch, KeepsResultsAndGradients) {
  for (const std::int64_t batch : {4, 5, 7}) {
    const Values whole = sliced_values(batch, 1);
    for (const std::int64_t slices : {std::int64_t{2}, std::int64_t{3}, batch}) {
      SCOPED_TRACE(std::to_string(batch) + " in " + std::to_string(slices));
      const Values parts = sliced_values(batch, slices);
      ASSERT_EQ(parts.size(), whole.size());
      for (const auto& [name, tensor] : whole) {
        // Y depends on single images, so its bits are equal.
        const double tolerance = name == "y" ? 0 : 1e-5;
        const auto text = tests::difference(tensor.view(), parts.at(name).view(), tolerance);
        EXPECT_FALSE(text) << name << ": " << text.value_or("");
      }
    }
  }
}

TEST(SliceBatch, MakesFoldedWeightsOnceForAllSlices) {
  Graph graph({.training = false});
  const Value y = conv_bn(images(graph, 4), {.filters = 5, .kernel = 3}, {});
  spatial_mean(y);
  const Rewritten fused = fuse_activations(graph);
  const Rewritten folded = fold_batch_norms(*fused.graph);
  const Rewritten sliced = slice_batch(*folded.graph, find_cut(*folded.graph).value(), 4);
  EXPECT_EQ(count(*sliced.graph, "fold_batch_norm"), 1);
  EXPECT_EQ(count(*sliced.graph, "conv"), 4);
}

TEST(SliceBatch, RefusesMoreSlicesThanImages) {
  Graph graph;
  network(images(graph, 3));
  EXPECT_THROW(slice_batch(graph, find_cut(graph).value(), 4), Error);
}

// A slice's gradient must not need a map of the previous slice, so that they never live at once.
TEST(SliceBatch, FinishesTheGradientOfASliceBeforeThatOfTheOneBefore) {
  Graph graph;
  const Value y = network(images(graph, 4));
  const Rewritten sliced = slice_batch(graph, find_cut(graph).value(), 4);
  Graph& made = *sliced.graph;
  const std::size_t forward = made.nodes().size();
  const Value loss{&made, sliced.was[index_of(y.id)].value()};
  const auto all = gradients(loss, parameters_of(made), made.input("dy", loss.desc()));
  std::vector<std::string> pools_and_first_weights;
  for (const Node& node : made.nodes().subspan(forward)) {
    const bool is_first =
        node.op->name() == "conv_backward_weights" && op_of(made, node.inputs[0]) == "slice_batch";
    if (node.op->name() == "max_pool_backward" || is_first) {
      pools_and_first_weights.push_back(is_first ? "weights" : "pool");
    }
  }
  EXPECT_THAT(pools_and_first_weights, ElementsAre("pool", "weights", "pool", "weights", "pool",
                                                   "weights", "pool", "weights"));
}

}  // namespace
}  // namespace cnn::layers
