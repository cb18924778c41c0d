#include "layers/passes/layout.h"

#include <algorithm>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <memory>
#include <string>

#include "layers/activation.h"
#include "layers/conv.h"
#include "layers/elementwise.h"
#include "layers/operands.h"
#include "layers/optimizer.h"
#include "layers/passes/autodiff.h"
#include "layers/pool.h"
#include "layers/stale_gradient.h"
#include "runtime/error.h"

namespace cnn::layers {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

TensorDesc packed(TensorDesc desc, std::string tag) {
  desc.layout = Layout::packed;
  const auto bytes = static_cast<std::size_t>(desc.shape.elements()) * size_of(desc.type);
  desc.packing = std::make_shared<const Packing>(Packing{"fake", std::move(tag), bytes});
  return desc;
}

KernelSpec as_requested(const Signature& s) { return {.workspace = 0, .in = s.in, .out = s.out}; }

// Returns a backend of specs without kernels. Convolutions pack their weights as "forward" and the
// gradients as `gradient`, element-wise ops accept any layout, and all other ops need plain
// tensors.
KernelTable fake_table(const std::string& gradient) {
  const auto no_kernel = [](const auto&, const Signature&) { return std::unique_ptr<Kernel>(); };
  KernelTable table;
  table.add<Conv2d>(
      [](const Conv2d&, const Signature& s) -> std::optional<KernelSpec> {
        KernelSpec spec = as_requested(s);
        spec.in[0].layout = s.out[0].layout;
        spec.in[1] = packed(spec.in[1], "forward");
        return spec;
      },
      no_kernel);
  table.add<Conv2dBackwardWeights>(
      [gradient](const Conv2dBackwardWeights&, const Signature& s) -> std::optional<KernelSpec> {
        KernelSpec spec = as_requested(s);
        spec.out[0] = packed(spec.out[0], gradient);
        return spec;
      },
      no_kernel);
  const auto anything = [](const auto&, const Signature& s) {
    return std::optional(as_requested(s));
  };
  table.add<Convert>(anything, no_kernel);
  table.add<Relu>(anything, no_kernel);
  table.add<Update>(anything, no_kernel);
  table.add<StaleGradient>(
      [](const StaleGradient&, const Signature& s) -> std::optional<KernelSpec> {
        KernelSpec spec = as_requested(s);
        spec.in[0] = spec.out[0] = spec.in[1];
        return spec;
      },
      no_kernel);
  table.otherwise(
      [](const Op&, const Signature& s) -> std::optional<KernelSpec> {
        KernelSpec spec = as_requested(s);
        std::ranges::transform(spec.in, spec.in.begin(), plain);
        std::ranges::transform(spec.out, spec.out.begin(), plain);
        return spec;
      },
      [](const Op&, const Signature&) { return std::unique_ptr<Kernel>(); });
  return table;
}

std::vector<std::string> ops_of(const Graph& graph) {
  std::vector<std::string> names;
  for (const Node& node : graph.nodes()) {
    names.emplace_back(node.op->name());
  }
  return names;
}

TensorDesc desc_of(const Graph& graph, std::string_view name) {
  return graph.info(graph.find(name).value()).desc;
}

Value images(Graph& graph) { return graph.input("x", described({2, 16, 6, 6}, DataType::f32)); }

constexpr ConvOptions bare{.filters = 16, .kernel = 3, .bias = false, .relu = false};

// Builds the training of one convolution by momentum; with `late`, by the gradient of the previous
// step.
void build_training(Graph& graph, bool late = false) {
  const Value y = conv(images(graph), bare);
  const Value w{&graph, *graph.find("v/cg/conv0/conv2d/kernel")};
  std::vector<Value> dw{*gradients(y, std::vector{w}, graph.input("dy", y.desc()))[0]};
  if (late) {
    append_stale_gradients(std::vector{w}, dw, 0);
  }
  OptimizerOptions options;
  options.update.rule = Rule::momentum;
  append_update(graph, std::vector{w}, dw, options);
}

TEST(AssignLayouts, GivesImagesTheAskedLayoutWithoutSeams) {
  Graph graph;
  relu(conv(conv(images(graph), bare), bare));
  const auto result = assign_layouts(graph, fake_table("forward"), Layout::nhwc).graph;
  EXPECT_THAT(ops_of(*result), ElementsAre("convert", "conv", "conv", "relu"));
  for (const Node& node : result->nodes()) {
    EXPECT_EQ(result->info(node.outputs[0]).desc.layout, Layout::nhwc);
  }
}

TEST(AssignLayouts, ConvertsATensorOnceForAllItsReaders) {
  Graph graph;
  const Value y = conv(images(graph), bare);
  spatial_mean(y);
  spatial_mean(y);
  const auto result = assign_layouts(graph, fake_table("forward"), Layout::nhwc).graph;
  EXPECT_THAT(ops_of(*result),
              ElementsAre("convert", "conv", "convert", "spatial_mean", "spatial_mean"));
  EXPECT_EQ(result->nodes()[3].inputs, result->nodes()[4].inputs);
}

TEST(AssignLayouts, PacksAParameterAndItsSlotAsItsGradientIsMade) {
  Graph graph;
  build_training(graph);
  const auto result = assign_layouts(graph, fake_table("backward"), Layout::nhwc).graph;
  const TensorDesc kernel = desc_of(*result, "v/cg/conv0/conv2d/kernel");
  EXPECT_EQ(kernel, packed(kernel, "backward"));
  EXPECT_EQ(desc_of(*result, "v/cg/conv0/conv2d/kernel/Momentum"), kernel);
  const std::vector<std::string> ops = ops_of(*result);
  const auto update = std::ranges::find(ops, "update");
  ASSERT_NE(update, ops.end());
  for (const TensorId id : result->nodes()[static_cast<std::size_t>(update - ops.begin())].inputs) {
    EXPECT_FALSE(result->info(id).name.ends_with(":converted")) << result->info(id).name;
  }
}

TEST(AssignLayouts, KeepsAStaleGradientAsItIsMade) {
  Graph graph;
  build_training(graph, true);
  const auto result = assign_layouts(graph, fake_table("backward"), Layout::nchw).graph;
  const TensorDesc kernel = desc_of(*result, "v/cg/conv0/conv2d/kernel");
  EXPECT_EQ(kernel, packed(kernel, "backward"));
  EXPECT_EQ(desc_of(*result, "v/cg/conv0/conv2d/kernel/stale_gradient"), kernel);
  EXPECT_THAT(ops_of(*result), ElementsAre("convert", "conv", "conv_backward_weights",
                                           "stale_gradient", "update", "sum_in_order"));
}

TEST(AssignLayouts, NeedsNoConversionWhereBothDirectionsPackAlike) {
  Graph graph;
  build_training(graph);
  const auto result = assign_layouts(graph, fake_table("forward"), Layout::nchw).graph;
  EXPECT_THAT(ops_of(*result),
              ElementsAre("conv", "conv_backward_weights", "update", "sum_in_order"));
}

TEST(AssignLayouts, PacksAParameterForItsReaderWhereNothingTrainsIt) {
  Graph graph({.training = false});
  conv(images(graph), bare);
  const auto result = assign_layouts(graph, fake_table("backward"), Layout::nchw).graph;
  const TensorDesc kernel = desc_of(*result, "v/cg/conv0/conv2d/kernel");
  EXPECT_EQ(kernel, packed(kernel, "forward"));
  EXPECT_THAT(ops_of(*result), ElementsAre("conv"));
}

TEST(AssignLayouts, TakesFixedVariablesAsTheyLie) {
  Graph training;
  build_training(training);
  const KernelTable table = fake_table("backward");
  const auto trained = assign_layouts(training, table, Layout::nchw).graph;
  Graph evaluation({.training = false});
  conv(images(evaluation), bare);
  const auto result = assign_layouts(evaluation, table, Layout::nchw, trained->tensors()).graph;
  EXPECT_EQ(desc_of(*result, "v/cg/conv0/conv2d/kernel"),
            desc_of(*trained, "v/cg/conv0/conv2d/kernel"));
  EXPECT_THAT(ops_of(*result), ElementsAre("convert", "conv"));
}

TEST(AssignLayouts, RefusesAFixedVariableOfAnotherShape) {
  EXPECT_THAT(
      ([] {
        Graph graph({.training = false});
        conv(images(graph), bare);
        TensorInfo other;
        other.name = "v/cg/conv0/conv2d/kernel";
        other.desc = described({1, 1, 3, 3}, DataType::f32);
        assign_layouts(graph, fake_table("forward"), Layout::nchw, std::span(&other, 1));
      }),
      ThrowsMessage<Error>(AllOf(HasSubstr("v/cg/conv0/conv2d/kernel"),
                                 HasSubstr("f32[16, 16, 3, 3]"), HasSubstr("f32[1, 1, 3, 3]"))));
}

TEST(AssignLayouts, HandsOutputsOverPlain) {
  Graph graph;
  graph.output("y", conv(images(graph), bare));
  const Rewritten result = assign_layouts(graph, fake_table("forward"), Layout::nchw16c);
  ASSERT_EQ(result.graph->outputs().size(), 1);
  const TensorDesc desc = result.graph->info(result.graph->outputs()[0].tensor).desc;
  EXPECT_EQ(desc, plain(desc));
  EXPECT_EQ(result.graph->nodes().back().op->name(), "convert");
}

}  // namespace
}  // namespace cnn::layers
