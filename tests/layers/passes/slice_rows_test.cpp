#include "layers/passes/slice_rows.h"

#include <algorithm>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <string>

#include "layers/activation.h"
#include "layers/batch_norm.h"
#include "layers/concat.h"
#include "layers/conv.h"
#include "layers/dense.h"
#include "layers/elementwise.h"
#include "layers/lrn.h"
#include "layers/operands.h"
#include "layers/passes/autodiff.h"
#include "layers/passes/fuse.h"
#include "layers/passes/slice_batch.h"
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

constexpr std::int64_t width = 11;

Value images(Graph& graph, std::int64_t batch, std::int64_t height) {
  return graph.input("x", described({batch, 3, height, width}, DataType::f32));
}

// Returns a module with branches of unequal reach, as in GoogLeNet.
Value module(Value x) {
  const Value pooled = max_pool(x, {.kernel = 3, .stride = 1, .padding = Padding::same});
  return concat(
      {{conv(x, {.filters = 2}), conv(conv(x, {.filters = 2}), {.filters = 3, .kernel = 3}),
        conv(conv(x, {.filters = 2}), {.filters = 2, .kernel = 5}), conv(pooled, {.filters = 2})}});
}

// Strides, both kinds of pools, norms across channels, branches and a sum with a shortcut.
Value network(Value x) {
  Value y = lrn(conv(x, {.filters = 5, .kernel = 7, .stride = 2}), {.radius = 2});
  y = max_pool(y, {.kernel = 3, .stride = 2, .padding = Padding::same});
  y = module(module(y));
  y = average_pool(y, {.kernel = 3, .stride = 2, .padding = Padding::same});
  const Value shortcut = conv(y, {.filters = 4, .stride = 2, .relu = false});
  const Value path = conv(y, {.filters = 4, .kernel = 3, .stride = 2, .relu = false});
  return dense(flatten(relu(add(shortcut, path))), {.units = 3, .relu = false});
}

std::vector<std::string> ops_of(const Graph& graph) {
  std::vector<std::string> ops;
  for (const Node& node : graph.nodes()) {
    ops.emplace_back(node.op->name());
  }
  return ops;
}

using Build = Value (*)(Value);

Values sliced_values(Build build, const Shape& shape, std::int64_t slices) {
  Graph graph;
  const Value y = build(graph.input("x", described(shape, DataType::f32)));
  const Rewritten rewritten = slice_rows(graph, find_row_cut(graph).value(), slices);
  return values_of(*rewritten.graph,
                   {rewritten.graph.get(), rewritten.was[index_of(y.id)].value()});
}

void expect_values_of_whole(Build build, const Shape& shape, std::int64_t slices) {
  SCOPED_TRACE(to_string(shape) + " in " + std::to_string(slices));
  const Values whole = sliced_values(build, shape, 1), parts = sliced_values(build, shape, slices);
  ASSERT_EQ(parts.size(), whole.size());
  for (const auto& [name, tensor] : whole) {
    // Rows of y are sums of the same terms in the same order, so their bits are equal.
    const double tolerance = name == "y" ? 0 : 1e-5;
    const auto text = tests::difference(tensor.view(), parts.at(name).view(), tolerance);
    EXPECT_FALSE(text) << name << ": " << text.value_or("");
  }
}

TEST(FindRowCut, IsTheLastMapOfWindows) {
  Graph graph;
  network(images(graph, 2, 40));
  EXPECT_EQ(op_of(graph, find_row_cut(graph).value()), "relu");
}

TEST(FindRowCut, EndsAtTheFirstNormOfATrainedBatch) {
  Graph graph;
  const Value y = conv(images(graph, 2, 9), {.filters = 5, .relu = false});
  conv(relu(batch_norm(y, {})), {.filters = 4});
  EXPECT_EQ(find_row_cut(graph), y.id);
  EXPECT_EQ(nodes_before_row_cut(graph, y.id), 1);
}

TEST(FindRowCut, PassesNormsWhoseStatisticsAreGiven) {
  Graph graph({.training = false});
  const Value y = relu(batch_norm(conv(images(graph, 2, 9), {.filters = 5, .relu = false}), {}));
  spatial_mean(y);
  EXPECT_EQ(find_row_cut(graph), y.id);
}

TEST(FindRowCut, IsNoneWhereAnOpNeedsWholeImagesAtOnce) {
  Graph graph;
  spatial_mean(lrn_within(images(graph, 2, 9), {.radius = 1}));
  EXPECT_FALSE(find_row_cut(graph));
}

TEST(SliceRows, RepeatsNodesForEachSliceOneSliceAfterAnother) {
  Graph graph;
  spatial_mean(conv(images(graph, 1, 10), {.filters = 2, .kernel = 3, .relu = false}));
  const Rewritten sliced = slice_rows(graph, find_row_cut(graph).value(), 3);
  EXPECT_THAT(ops_of(*sliced.graph),
              ElementsAre("slice_rows", "conv", "slice_rows", "conv", "slice_rows", "conv",
                          "concat_rows", "spatial_mean"));
  const auto rows = [&](std::size_t node) {
    return sliced.graph->info(sliced.graph->nodes()[node].outputs[0]).desc.shape[2];
  };
  // With a halo of one row on each inner side.
  EXPECT_THAT((std::vector{rows(0), rows(2), rows(4)}), ElementsAre(4, 5, 5));
  EXPECT_THAT((std::vector{rows(1), rows(3), rows(5), rows(6)}), ElementsAre(3, 3, 4, 10));
}

TEST(SliceRows, KeepsResultsAndGradients) {
  for (const std::int64_t height : {40, 43, 57}) {
    for (const std::int64_t slices : {2, 3}) {
      expect_values_of_whole(network, {2, 3, height, width}, slices);
    }
  }
}

// A slice of one row lies within the padding of its windows on both sides.
TEST(SliceRows, KeepsResultsAndGradientsInSlicesOfSingleRows) {
  expect_values_of_whole(
      [](Value x) { return spatial_mean(module(conv(x, {.filters = 3, .kernel = 5}))); },
      {1, 3, 6, 5}, 6);
  expect_values_of_whole(
      [](Value x) {
        return spatial_mean(conv(x, {.filters = 2, .kernel_h = 7, .kernel_w = 1, .relu = false}));
      },
      {1, 2, 5, 3}, 5);
}

// Windows that are farther apart than they are high skip rows.
TEST(SliceRows, KeepsResultsAndGradientsOfStridesWithGaps) {
  expect_values_of_whole(
      [](Value x) {
        const Value y = conv(x, {.filters = 2, .kernel = 1, .stride = 3, .relu = false});
        return spatial_mean(conv(y, {.filters = 2, .kernel = 3, .padding = Padding::valid}));
      },
      {2, 2, 22, 9}, 4);
  expect_values_of_whole(
      [](Value x) {
        return spatial_mean(
            conv(x, {.filters = 2, .kernel = 3, .stride = 2, .padding = Padding::same_resnet}));
      },
      {1, 2, 13, 13}, 3);
}

TEST(SliceRows, ActsInsideOfSlicesAlongTheBatch) {
  Graph graph;
  const Value y = network(images(graph, 3, 40));
  const Rewritten rows = slice_rows(graph, find_row_cut(graph).value(), 2);
  const Rewritten both = slice_batch(*rows.graph, find_cut(*rows.graph).value(), 3);
  const auto ops = ops_of(*both.graph);
  EXPECT_EQ(std::ranges::count(ops, "concat_rows"), 3);
  EXPECT_EQ(std::ranges::count(ops, "concat_batch"), 1);
  const TensorId in_rows = rows.was[index_of(y.id)].value();
  const Values whole = values_of(graph, y);
  const Values parts =
      values_of(*both.graph, {both.graph.get(), both.was[index_of(in_rows)].value()});
  for (const auto& [name, tensor] : whole) {
    const auto text = tests::difference(tensor.view(), parts.at(name).view(), 1e-5);
    EXPECT_FALSE(text) << name << ": " << text.value_or("");
  }
}

TEST(SliceRows, SharesParametersAndFoldedWeights) {
  Graph graph({.training = false});
  spatial_mean(conv_bn(images(graph, 2, 12), {.filters = 5, .kernel = 3}, {}));
  const Rewritten fused = fuse_activations(graph);
  const Rewritten folded = fold_batch_norms(*fused.graph);
  const Rewritten sliced = slice_rows(*folded.graph, find_row_cut(*folded.graph).value(), 4);
  const auto ops = ops_of(*sliced.graph);
  EXPECT_EQ(std::ranges::count(ops, "fold_batch_norm"), 1);
  EXPECT_EQ(std::ranges::count(ops, "conv"), 4);
}

TEST(SliceRows, RefusesMoreSlicesThanRows) {
  Graph graph;
  spatial_mean(conv(images(graph, 1, 7), {.filters = 2, .stride = 2}));
  EXPECT_THROW(slice_rows(graph, find_row_cut(graph).value(), 5), Error);
}

// A slice's gradient must not need a map of the previous slice, so that they never live at once.
TEST(SliceRows, FinishesTheGradientOfASliceBeforeThatOfTheOneBefore) {
  Graph graph;
  const Value y = network(images(graph, 1, 60));
  const Rewritten sliced = slice_rows(graph, find_row_cut(graph).value(), 3);
  Graph& made = *sliced.graph;
  const std::size_t forward = made.nodes().size();
  const Value loss{&made, sliced.was[index_of(y.id)].value()};
  const auto all = gradients(loss, parameters_of(made), made.input("dy", loss.desc()));
  std::vector<std::string> averages_and_first_weights;
  for (const Node& node : made.nodes().subspan(forward)) {
    const bool is_first =
        node.op->name() == "conv_backward_weights" && made.info(node.inputs[0]).desc.shape[1] == 3;
    if (node.op->name() == "average_pool_backward" || is_first) {
      averages_and_first_weights.push_back(is_first ? "weights" : "average");
    }
  }
  EXPECT_THAT(averages_and_first_weights,
              ElementsAre("average", "weights", "average", "weights", "average", "weights"));
}

}  // namespace
}  // namespace cnn::layers
