#include "layers/passes/slice_norms.h"

#include <algorithm>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <map>
#include <string>

#include "layers/activation.h"
#include "layers/batch_norm.h"
#include "layers/concat.h"
#include "layers/conv.h"
#include "layers/dense.h"
#include "layers/dropout.h"
#include "layers/elementwise.h"
#include "layers/operands.h"
#include "layers/passes/autodiff.h"
#include "layers/passes/fuse.h"
#include "layers/passes/fuse_gradients.h"
#include "layers/passes/rewriter.h"
#include "layers/pool.h"
#include "layers/subsample.h"
#include "runtime/error.h"
#include "tests/support/interpreter.h"
#include "tests/support/numeric.h"

namespace cnn::layers {
namespace {

using testing::ElementsAre;

Value images(Graph& graph, std::int64_t batch) {
  return graph.input("x", described({batch, 3, 9, 9}, DataType::f32));
}

// A stem with a pool, a residual block with a projection, two branches that meet, a norm of images
// that another op reads too; then a dense layer.
Value network(Value x) {
  const Value stem = conv_bn(x, {.filters = 6, .kernel = 3}, {.scale = true});
  const Value y = max_pool(stem, {.kernel = 3, .stride = 2});
  const Value main = conv_bn(y, {.filters = 6, .kernel = 3, .relu = false}, {.scale = true});
  const Value side = conv_bn(y, {.filters = 6, .relu = false}, {});
  const Value block = relu(add(main, side));
  const Value branches[] = {
      conv_bn(block, {.filters = 4}, {}),
      average_pool(block, {.kernel = 3, .stride = 1, .padding = Padding::same})};
  const Value joined = concat(branches);
  const Value last = relu(batch_norm(joined, {.scale = true}));
  const Value z = add(conv_bn(last, {.filters = 10, .depthwise = false}, {}), joined);
  return dense(dropout(spatial_mean(z), 0.5), {.units = 4, .relu = false});
}

std::size_t count(const Graph& graph, std::string_view op) {
  return static_cast<std::size_t>(std::ranges::count_if(
      graph.nodes(), [op](const Node& node) { return node.op->name() == op; }));
}

using Values = std::map<std::string, tests::HostTensor>;

// The training step of the network in slices: y, and the gradients of sum(y dy) by all parameters,
// named after them.
struct Step {
  Rewritten sliced;
  std::map<std::string, TensorId> results;  // of `sliced`
};

Step step_of(std::int64_t batch, std::int64_t slices, bool fuses) {
  Step step;
  Graph forward;
  const Value y = network(images(forward, batch));
  const Rewritten start = fuses ? fuse_activations(forward) : copy_of(forward);
  Graph& graph = *start.graph;
  const Value last{&graph, start.was[index_of(y.id)].value()};
  const std::vector<Value> parameters = parameters_of(graph);
  const auto made = gradients(last, parameters, graph.input("dy", last.desc()));
  append_moving_averages(graph);
  graph.output("y", last);
  for (std::size_t i = 0; i < made.size(); ++i) {
    graph.output(graph.info(parameters[i].id).name, made[i].value());
  }
  const Rewritten joined = fuses ? fuse_gradient_adds(graph) : copy_of(graph);
  step.sliced = slice_norms(*joined.graph, slices);
  for (const Output& output : step.sliced.graph->outputs()) {
    step.results.emplace(output.name, output.tensor);
  }
  return step;
}

Values values_of(const Step& step) {
  tests::Interpreter values(*step.sliced.graph);
  values.run();
  Values by_name;
  for (const auto& [name, tensor] : step.results) {
    by_name.emplace(name, tests::copy_of(values.view(tensor)));
  }
  for (std::uint32_t t = 0; t < step.sliced.graph->tensors().size(); ++t) {
    const TensorInfo& info = step.sliced.graph->tensors()[t];
    if (info.role == Role::state && info.saved) {  // the moving averages
      by_name.emplace(info.name, tests::copy_of(values.view(TensorId{t})));
    }
  }
  return by_name;
}

TEST(SliceNorms, KeepsResultsGradientsAndMovingAverages) {
  for (const bool fuses : {false, true}) {
    for (const std::int64_t batch : {4, 5}) {
      const Values whole = values_of(step_of(batch, 1, fuses));
      for (const std::int64_t slices : {std::int64_t{2}, std::int64_t{3}, batch}) {
        SCOPED_TRACE(std::to_string(batch) + " in " + std::to_string(slices));
        const Values parts = values_of(step_of(batch, slices, fuses));
        ASSERT_EQ(parts.size(), whole.size());
        for (const auto& [name, tensor] : whole) {
          const auto text = tests::difference(tensor.view(), parts.at(name).view(), 1e-4);
          EXPECT_FALSE(text) << name << ": " << text.value_or("");
        }
      }
    }
  }
}

TEST(SliceNorms, LeavesNoNormAndNoConvolutionOfTheWholeBatch) {
  const Step step = step_of(4, 4, true);
  const Graph& graph = *step.sliced.graph;
  EXPECT_EQ(count(graph, "batch_norm") + count(graph, "batch_norm_backward"), 0);
  for (const Node& node : graph.nodes()) {
    const bool reads_images = node.op->name() == "conv" || node.op->name() == "max_pool" ||
                              node.op->name().starts_with("batch_norm_input");
    EXPECT_TRUE(!reads_images || graph.info(node.inputs.front()).desc.shape[0] == 1)
        << node.op->name();
  }
}

// A round begins with the slice with which the one before it ended.
TEST(SliceNorms, TakesTheSlicesToAndFro) {
  Graph graph;
  const Value y = conv(images(graph, 2), {.filters = 2, .bias = false, .relu = false});
  graph.output("y", relu(batch_norm(y, {})));
  const Rewritten sliced = slice_norms(graph, 2);
  std::vector<std::string> ops;
  for (const Node& node : sliced.graph->nodes()) {
    ops.emplace_back(node.op->name());
  }
  EXPECT_THAT(ops,
              ElementsAre("slice_batch", "conv", "batch_norm_moments", "slice_batch", "conv",
                          "batch_norm_moments", "batch_norm_merge_moments", "batch_norm_inference",
                          "relu", "batch_norm_inference", "relu", "concat_batch"));
  const auto nodes = sliced.graph->nodes();
  EXPECT_EQ(nodes[7].inputs[0], nodes[4].outputs[0]);  // the second slice comes first
  EXPECT_EQ(nodes[11].inputs[0], nodes[10].outputs[0]);
  EXPECT_EQ(nodes[6].inputs[0], nodes[2].outputs[0]);
}

TEST(SliceNorms, SlicesAgainBehindAnOpThatNeedsTheWholeBatch) {
  Graph graph;
  const Value y = dropout(relu(images(graph, 4)), 0.5);
  graph.output("y", relu(conv(y, {.filters = 2, .relu = false})));
  const Rewritten sliced = slice_norms(graph, 2);
  EXPECT_EQ(count(*sliced.graph, "dropout"), 1);
  EXPECT_EQ(count(*sliced.graph, "conv"), 2);
  EXPECT_EQ(count(*sliced.graph, "slice_batch"), 4);
}

TEST(SliceNorms, RefusesMoreSlicesThanImages) {
  Graph graph;
  graph.output("y", network(images(graph, 3)));
  EXPECT_THROW(slice_norms(graph, 4), Error);
}

TEST(NormSlicing, CountsOperationsOnImages) {
  Graph graph;
  network(images(graph, 4));
  const Slicing slicing = norm_slicing_of(graph, 2);
  EXPECT_TRUE(slicing.is_worthwhile());
  EXPECT_EQ(slicing.forward_nodes - slicing.sliceable, 2);  // dropout, dense
}

TEST(CanSliceNorms, NeedsANormInTraining) {
  const KernelTable loops;
  Graph training, evaluation({.training = false}), plain;
  batch_norm(images(training, 2), {});
  batch_norm(images(evaluation, 2), {});
  relu(images(plain, 2));
  EXPECT_TRUE(can_slice_norms(training, loops, Layout::nchw));
  EXPECT_FALSE(can_slice_norms(evaluation, loops, Layout::nchw));
  EXPECT_FALSE(can_slice_norms(plain, loops, Layout::nchw));
}

}  // namespace
}  // namespace cnn::layers
