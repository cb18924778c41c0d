#include "layers/passes/fuse_conv.h"

#include <functional>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <map>
#include <string>
#include <vector>

#include "layers/activation.h"
#include "layers/batch_norm.h"
#include "layers/concat.h"
#include "layers/conv.h"
#include "layers/dense.h"
#include "layers/elementwise.h"
#include "layers/fused_conv.h"
#include "layers/fused_norm.h"
#include "layers/loss.h"
#include "layers/operands.h"
#include "layers/optimizer.h"
#include "layers/passes/fuse.h"
#include "layers/passes/pipeline.h"
#include "layers/pool.h"
#include "runtime/cpu/reference_kernel.h"
#include "tests/layers/running_graph.h"
#include "tests/support/interpreter.h"
#include "tests/support/numeric.h"

namespace cnn::layers {
namespace {

using testing::ElementsAre;

constexpr BatchNormOptions norm{.decay = 0.9, .epsilon = 1e-5, .scale = true};

using Counts = std::map<std::string, std::size_t>;
using Network = std::function<Value(Value)>;
using Accepts = std::function<bool(const Op&, const Signature&)>;

bool accepts_all(const Op& /*op*/, const Signature& /*asked*/) { return true; }

KernelTable table_of(Accepts accepts) {
  KernelTable table;
  table.otherwise(
      [accepts = std::move(accepts)](const Op& op, const Signature& request) {
        return accepts(op, request)
                   ? std::optional(KernelSpec{.in = request.in, .out = request.out})
                   : std::nullopt;
      },
      [](const Op& op, const Signature& /*signature*/) {
        return std::make_unique<ReferenceKernel>(op);
      });
  return table;
}

Value images(Graph& graph, std::int64_t channels) {
  return graph.input("x", described({3, channels, 6, 6}, DataType::f32));
}

// Returns a training step before the fusion of convolutions: features, a classifier, gradients as
// outputs, moving averages and the update.
std::shared_ptr<Graph> step_of(const Network& network, std::int64_t channels) {
  Graph forward;
  const Value features = network(images(forward, channels));
  const Value logits = dense(spatial_mean(features), {.units = 10, .relu = false});
  forward.output("loss",
                 softmax_cross_entropy(logits, forward.input("labels", {{3}, DataType::i32})));
  const std::shared_ptr<Graph> graph = fuse_activations(forward).graph;
  TrainingOptions options{.optimizer = {.update = {.rule = Rule::momentum}}};
  options.on_gradients = [&](std::span<const Value> /*parameters*/, std::span<Value> gradients) {
    for (const Value& gradient : gradients) {
      graph->output("gradient " + std::to_string(graph->outputs().size()), gradient);
    }
  };
  append_training(*graph, {graph.get(), graph->outputs().front().tensor}, options);
  return graph;
}

std::shared_ptr<Graph> fused(const Graph& graph, const Accepts& accepts = accepts_all) {
  return fuse_convolutions(graph, table_of(accepts), Layout::nchw).graph;
}

std::vector<std::string> ops_of(const Graph& graph) {
  std::vector<std::string> names;
  for (const Node& node : graph.nodes()) {
    names.emplace_back(node.op->name());
  }
  return names;
}

Counts counts(const Graph& graph) {
  Counts result;
  for (const Node& node : graph.nodes()) {
    ++result[std::string(node.op->name())];
  }
  return result;
}

// Counts only the ops that this pass adds or removes.
Counts counts_around_convolutions(const Graph& graph) {
  Counts result = counts(graph);
  std::erase_if(result, [](const auto& row) {
    const std::string& name = row.first;
    return name.find("conv") == name.npos && name.find("norm") == name.npos &&
           name != "finish_statistics" && name != "scale_bias" && name != "channel_sums";
  });
  return result;
}

Value unit(Value x, std::int64_t filters, std::int64_t kernel = 1, std::int64_t stride = 1) {
  return conv_bn(x, {.filters = filters, .kernel = kernel, .stride = stride}, norm);
}

Value last_unit(Value x, std::int64_t filters, std::int64_t stride = 1) {
  return conv_bn(x, {.filters = filters, .stride = stride, .relu = false}, norm);
}

Value bottleneck(Value x, std::int64_t width, std::int64_t stride) {
  const bool same = stride == 1 && x.desc().shape[1] == 4 * width;
  const Value shortcut = same ? x : last_unit(x, 4 * width, stride);
  const Value y = unit(unit(x, width), width, 3, stride);
  return relu(add(shortcut, last_unit(y, 4 * width)));
}

Value bare(Value x, std::int64_t filters, std::int64_t kernel = 1) {
  return conv(x, {.filters = filters, .kernel = kernel, .bias = false, .relu = false});
}

// Returns a block of ResNet v2: norm and ReLU before the convolutions, an addition without ReLU.
Value preactivated(Value x, std::int64_t width) {
  const Value activated = relu(batch_norm(x, {}));
  const Value shortcut = x.desc().shape[1] == 4 * width ? x : bare(activated, 4 * width);
  return add(shortcut, bare(unit(unit(activated, width), width, 3), 4 * width));
}

// Returns a module in which two convolutions read one norm without gamma, and branches join.
Value inception_module(Value x) {
  const BatchNormOptions plain;
  const Value a = conv_bn(x, {.filters = 4}, plain);
  const Value b = conv_bn(x, {.filters = 5}, plain);
  const Value b1 = conv_bn(b, {.filters = 3, .kernel_h = 1, .kernel_w = 3}, plain);
  const Value b2 = conv_bn(b, {.filters = 3, .kernel_h = 3, .kernel_w = 1}, plain);
  const Value pooled = average_pool(x, {.kernel = 3, .stride = 1, .padding = Padding::same});
  return concat({{a, b1, b2, conv_bn(pooled, {.filters = 2}, plain)}});
}

Value identity_block(Value x) { return bottleneck(x, 2, 1); }
Value projected_block(Value x) { return bottleneck(x, 3, 2); }
Value preactivated_blocks(Value x) {
  return relu(batch_norm(preactivated(preactivated(x, 3), 3), {}));
}
Value small_resnet(Value x) {
  const Value stem = max_pool(unit(x, 8, 3), {.kernel = 3, .stride = 2, .padding = Padding::same});
  return bottleneck(bottleneck(stem, 3, 1), 3, 1);
}
Value depthwise(Value x) {
  return unit(conv_bn(unit(x, 6), {.kernel = 3, .depthwise = true}, norm), 4);
}
Value basic_block(Value x) {  // a norm without ReLU, and no projection
  const Value y = last_unit(x, 6);
  return relu(add(y, last_unit(unit(y, 6, 3), 6)));
}

struct Row {
  std::string name;
  Network network;
  std::int64_t channels = 8;
};
void PrintTo(const Row& row, std::ostream* out) { *out << row.name; }

class FuseConvolutions : public testing::TestWithParam<Row> {};

// Compares the loss and every gradient, parameter, slot and moving average after the step.
void expect_same_values(const Graph& before, const Graph& after) {
  tests::Interpreter expected(before);
  tests::Interpreter actual(after);
  expected.run();
  actual.run();
  ASSERT_EQ(before.outputs().size(), after.outputs().size());
  for (std::size_t i = 0; i < before.outputs().size(); ++i) {
    const auto text = tests::difference(expected.view(before.outputs()[i].tensor),
                                        actual.view(after.outputs()[i].tensor), 2e-4);
    EXPECT_FALSE(text) << before.outputs()[i].name << ": " << text.value_or("");
  }
  for (std::uint32_t i = 0; i < before.tensors().size(); ++i) {
    const TensorInfo& info = before.tensors()[i];
    if (info.role == Role::parameter || info.role == Role::state) {
      const auto text = tests::difference(expected.view(TensorId{i}),
                                          actual.view(after.find(info.name).value()), 2e-4);
      EXPECT_FALSE(text) << info.name << ": " << text.value_or("");
    }
  }
}

TEST_P(FuseConvolutions, KeepsTheValuesOfAStep) {
  const std::shared_ptr<Graph> before = step_of(GetParam().network, GetParam().channels);
  const std::shared_ptr<Graph> after = fused(*before);
  EXPECT_GT(counts(*after)["fused_conv"], 0);
  expect_same_values(*before, *after);
}

std::vector<NodeIndex> norms_of(const Graph& graph) {
  std::vector<NodeIndex> norms;
  for (NodeIndex i = 0; i < graph.nodes().size(); ++i) {
    if (graph.nodes()[i].op->name() == "batch_norm") {
      norms.push_back(i);
    }
  }
  return norms;
}

TEST_P(FuseConvolutions, KeepsTheValuesOfAStepInWhichSomeNormsStayPlain) {
  const std::shared_ptr<Graph> before = step_of(GetParam().network, GetParam().channels);
  const std::vector<NodeIndex> norms = norms_of(*before);
  for (std::size_t kept = 0; kept < norms.size(); ++kept) {
    SCOPED_TRACE("norm " + std::to_string(kept));
    for (const PlainNorms& plain :
         {PlainNorms{norms[kept]}, PlainNorms(norms.begin() + 1, norms.begin() + 1 + kept)}) {
      const std::shared_ptr<Graph> after =
          fuse_convolutions(*before, table_of(accepts_all), Layout::nchw, plain).graph;
      EXPECT_GE(counts(*after)["batch_norm"], plain.size());
      expect_same_values(*before, *after);
    }
  }
}

TEST_P(FuseConvolutions, LeavesTheGraphAloneWhereAllNormsStayPlain) {
  const std::shared_ptr<Graph> before = step_of(GetParam().network, GetParam().channels);
  const std::vector<NodeIndex> norms = norms_of(*before);
  EXPECT_EQ(counts(*fuse_convolutions(*before, table_of(accepts_all), Layout::nchw,
                                      PlainNorms(norms.begin(), norms.end()))
                        .graph),
            counts(*before));
}

// Both passes must use the slope and offset of FinishStatistics. The backward pass therefore sees a
// norm with mean 0 and deviation 1.
TEST_P(FuseConvolutions, OpensGatesByTheSameSlopesInBothPasses) {
  const std::shared_ptr<Graph> graph = fused(*step_of(GetParam().network, GetParam().channels));
  std::map<TensorId, const Node*> maker;
  for (const Node& node : graph->nodes()) {
    for (const TensorId output : node.outputs) {
      maker[output] = &node;
    }
  }
  for (const Node& node : graph->nodes()) {
    if (node.op->name() != "conv_backward_data_norm") {
      continue;
    }
    const auto* const zero = dynamic_cast<const Fill*>(maker.at(node.inputs[3])->op.get());
    const auto* const one = dynamic_cast<const Fill*>(maker.at(node.inputs[4])->op.get());
    ASSERT_TRUE(zero != nullptr && one != nullptr);
    EXPECT_EQ(zero->value, 0);
    EXPECT_EQ(one->value, 1);
    const Node* const statistics = maker.at(node.inputs[5]);
    ASSERT_EQ(statistics->op->name(), "finish_statistics");
    const std::size_t in_f32 = statistics->outputs.size() - 2;
    EXPECT_EQ(node.inputs[5], statistics->outputs[in_f32]);
    EXPECT_EQ(node.inputs[6], statistics->outputs[in_f32 + 1]);
  }
}

TEST_P(FuseConvolutions, ChangesNothingTheSecondTime) {
  const std::shared_ptr<Graph> once = fused(*step_of(GetParam().network, GetParam().channels));
  EXPECT_EQ(counts(*fused(*once)), counts(*once));
}

TEST_P(FuseConvolutions, LeavesTheGraphAloneWhereTheTableRunsNoFusedOp) {
  const std::shared_ptr<Graph> before = step_of(GetParam().network, GetParam().channels);
  const auto nothing = [](const Op&, const Signature&) { return false; };
  EXPECT_EQ(counts(*fused(*before, nothing)), counts(*before));
}

// If the table lacks any one op, the fused graph must do without it.
TEST_P(FuseConvolutions, MakesNoOpThatTheTableDoesNotRun) {
  const std::shared_ptr<Graph> before = step_of(GetParam().network, GetParam().channels);
  for (const std::string_view missing :
       {"fused_conv", "conv_backward_data_norm", "fused_conv_backward_weights", "channel_sums",
        "finish_statistics", "scale_bias", "norm_backward_end"}) {
    const auto accepts = [=](const Op& op, const Signature&) { return op.name() != missing; };
    EXPECT_EQ(counts(*fused(*before, accepts)).count(std::string(missing)), 0) << missing;
  }
}

TEST_P(FuseConvolutions, RunsAsPlanned) {
  const std::shared_ptr<Graph> graph = fused(*step_of(GetParam().network, GetParam().channels));
  tests::Interpreter expected(*graph);
  expected.run();
  KernelTable reference;
  add_reference(reference);
  tests::RunningGraph running(*graph, reference, Layout::nchw);
  running.run();
  for (std::size_t i = 0; i < graph->outputs().size(); ++i) {
    const auto text =
        tests::difference(expected.view(graph->outputs()[i].tensor), running.results()[i], 1e-6);
    EXPECT_FALSE(text) << graph->outputs()[i].name << ": " << text.value_or("");
  }
}

std::vector<Row> rows() {
  return {{"identity_block", identity_block},
          {"projected_block", projected_block},
          {"preactivated_blocks", preactivated_blocks},
          {"inception_module", inception_module},
          {"basic_block", basic_block},
          {"small_resnet", small_resnet, 3},
          {"depthwise", depthwise}};
}

std::string name_of_row(const testing::TestParamInfo<Row>& info) { return info.param.name; }

INSTANTIATE_TEST_SUITE_P(All, FuseConvolutions, testing::ValuesIn(rows()), name_of_row);

// The first of three convolutions loads its input unchanged, the others normalise on load, and only
// the block's end is stored. Its gradient still passes the last norm; the two norms before it are
// parts of convolutions.
TEST(FusedConvolutions, StoreOnlyTheEndOfABottleneck) {
  EXPECT_EQ(counts_around_convolutions(*fused(*step_of(identity_block, 8))),
            (Counts{{"fused_conv", 3},
                    {"finish_statistics", 3},
                    {"scale_bias", 1},
                    {"batch_norm_backward", 1},
                    {"conv_backward_data_norm", 2},
                    {"norm_backward_end", 2},
                    {"fused_conv_backward_weights", 2},
                    {"conv_backward_weights", 1}}));
}

TEST(FusedConvolutions, JoinBothNormsOfAProjectedBottleneckInOneNode) {
  EXPECT_EQ(counts_around_convolutions(*fused(*step_of(projected_block, 8))),
            (Counts{{"fused_conv", 4},
                    {"finish_statistics", 4},
                    {"scale_bias", 1},
                    {"batch_norm_backward", 2},
                    {"conv_backward_data_norm", 2},
                    {"norm_backward_end", 2},
                    {"fused_conv_backward_weights", 2},
                    {"conv_backward_weights", 2}}));
}

// The sums are over the blocks' inputs, which no convolution makes. The last norm feeds a mean, so
// it stays. In the projected block two gradients join before the norm, so that part stays too.
TEST(FusedConvolutions, NormaliseTheJoinOfPreactivatedBlocksOnLoad) {
  EXPECT_EQ(counts_around_convolutions(*fused(*step_of(preactivated_blocks, 8))),
            (Counts{{"batch_norm", 1},
                    {"channel_sums", 2},
                    {"finish_statistics", 6},
                    {"fused_conv", 7},
                    {"batch_norm_backward", 2},
                    {"conv_backward_data", 2},
                    {"conv_backward_data_norm", 5},
                    {"norm_backward_end", 5},
                    {"fused_conv_backward_weights", 7}}));
}

TEST(FusedConvolutions, NormaliseForSeveralReadersOnLoad) {
  EXPECT_EQ(counts_around_convolutions(*fused(*step_of(inception_module, 8))),
            (Counts{{"fused_conv", 5},
                    {"finish_statistics", 5},
                    {"scale_bias", 4},
                    {"batch_norm_backward", 5},
                    {"conv_backward_data", 2},
                    {"fused_conv_backward_weights", 2},
                    {"conv_backward_weights", 3}}));
}

TEST(FusedConvolutions, LeaveDepthwiseOnesAsTheyAre) {
  const Counts after = counts(*fused(*step_of(depthwise, 8)));
  EXPECT_EQ(after.at("conv"), 1);
  EXPECT_EQ(after.at("fused_conv"), 2);
}

// The first two convolutions output only the raw image and two vectors of sums.
TEST(FusedConvolutions, StoreNoImageThatOnlyConvolutionsRead) {
  Graph graph;
  unit(unit(images(graph, 8), 8), 8, 3);
  const Rewritten rewritten =
      fuse_convolutions(*fuse_activations(graph).graph, table_of(accepts_all), Layout::nchw);
  EXPECT_THAT(ops_of(*rewritten.graph), ElementsAre("fused_conv", "finish_statistics", "fused_conv",
                                                    "finish_statistics", "scale_bias"));
}

TEST(FusedConvolutions, StoreAnImageThatTheHostReads) {
  Graph graph;
  graph.output("hidden", relu(unit(images(graph, 8), 8)));
  const Rewritten rewritten =
      fuse_convolutions(*fuse_activations(graph).graph, table_of(accepts_all), Layout::nchw);
  EXPECT_EQ(counts(*rewritten.graph)["scale_bias"], 1);
}

// The fake device's kernels need a multiple of four channels. The first convolution and its norm
// stay separate; all later ones are fused.
TEST(FusedConvolutions, AreOnlyThoseThatTheTableRuns) {
  const auto wide = [](const Op& op, const Signature& request) {
    return op.name() != "fused_conv" || request.in[0].shape[1] % 4 == 0;
  };
  const Counts after =
      counts(*fused(*step_of([](Value x) { return unit(unit(unit(x, 8, 3), 8), 8); }, 3), wide));
  EXPECT_EQ(after.at("conv"), 1);
  EXPECT_EQ(after.at("channel_sums"), 1);
  EXPECT_EQ(after.at("fused_conv"), 2);
}

// An engine that normalises on load may exist only in combination with sums, which then remain
// unused.
TEST(FusedConvolutions, SumUpForNobodyWhereNoOtherKernelLoadsNormalised) {
  const auto only_with_sums = [](const Op& op, const Signature&) {
    const auto* conv = dynamic_cast<const FusedConv*>(&op);
    return conv == nullptr || conv->attributes.statistics;
  };
  Graph graph;
  bare(unit(images(graph, 8), 8), 4);
  const Rewritten rewritten =
      fuse_convolutions(*fuse_activations(graph).graph, table_of(only_with_sums), Layout::nchw);
  EXPECT_THAT(ops_of(*rewritten.graph),
              ElementsAre("fused_conv", "finish_statistics", "fused_conv"));
  EXPECT_EQ(rewritten.graph->nodes().back().outputs.size(), 3);
}

TEST(FusedConvolutions, LoadVectorsOfTheirImagesType) {
  Graph graph({.compute = DataType::f16});
  unit(unit(graph.input("x", described({2, 8, 6, 6}, DataType::f16)), 8), 8);
  const Rewritten rewritten =
      fuse_convolutions(*fuse_activations(graph).graph, table_of(accepts_all), Layout::nhwc);
  const Node& second = rewritten.graph->nodes()[2];
  ASSERT_EQ(second.op->name(), "fused_conv");
  EXPECT_EQ(rewritten.graph->info(second.inputs[2]).desc.type, DataType::f16);
  const Node& end = rewritten.graph->nodes().back();
  ASSERT_EQ(end.op->name(), "scale_bias");
  EXPECT_EQ(rewritten.graph->info(end.inputs[1]).desc.type, DataType::f32);
}

}  // namespace
}  // namespace cnn::layers
