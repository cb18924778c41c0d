#include "layers/passes/fuse.h"

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
#include "layers/operands.h"
#include "layers/passes/autodiff.h"
#include "layers/pool.h"
#include "tests/support/interpreter.h"
#include "tests/support/numeric.h"

namespace cnn::layers {
namespace {

using testing::ElementsAre;

std::vector<std::string> ops_of(const Graph& graph) {
  std::vector<std::string> names;
  for (const Node& node : graph.nodes()) {
    names.emplace_back(node.op->name());
  }
  return names;
}

Value images(Graph& graph, Shape shape = {2, 5, 6, 6}) {
  return graph.input("x", described(shape, DataType::f32));
}

constexpr BatchNormOptions norm{.epsilon = 1e-5, .scale = true};

Value residual_block(Value x, std::int64_t width) {
  const Value shortcut = conv_bn(x, {.filters = width, .stride = 2, .relu = false}, norm);
  Value y = conv_bn(x, {.filters = 3, .stride = 2}, norm);
  y = conv_bn(y, {.filters = width, .kernel = 3, .relu = false}, norm);
  return relu(add(y, shortcut));
}

// Two blocks, one of them with an identity shortcut, then a convolution with bias and a dense
// layer.
Value network(Value x) {
  Value y = residual_block(x, 6);
  const Value main = conv_bn(y, {.filters = 6, .kernel = 3, .relu = false}, norm);
  y = relu(add(main, y));
  y = conv(y, {.filters = 4});
  return dense(spatial_mean(y), {.units = 7});
}

// Returns y and the gradients of sum(y dy) with respect to all parameters, by name.
std::map<std::string, tests::HostTensor> values_of(Graph& graph, Value y) {
  std::vector<Value> parameters;
  std::vector<std::string> names;
  for (std::uint32_t i = 0; i < graph.tensors().size(); ++i) {
    if (graph.tensors()[i].role == Role::parameter) {
      parameters.push_back({&graph, TensorId{i}});
      names.push_back(graph.tensors()[i].name);
    }
  }
  std::vector<std::optional<Value>> results;
  if (graph.traits().training) {
    results = gradients(y, parameters, graph.input("dy", y.desc()));
  } else {
    names.clear();
  }
  results.emplace_back(y);
  names.emplace_back("y");
  tests::Interpreter values(graph);
  values.run();
  std::map<std::string, tests::HostTensor> by_name;
  for (std::size_t i = 0; i < results.size(); ++i) {
    by_name.emplace(names[i], tests::copy_of(values.view(results[i].value().id)));
  }
  return by_name;
}

void expect_equal(const std::map<std::string, tests::HostTensor>& expected,
                  const std::map<std::string, tests::HostTensor>& actual) {
  ASSERT_EQ(expected.size(), actual.size());
  for (const auto& [name, tensor] : expected) {
    const auto text = tests::difference(tensor.view(), actual.at(name).view(), 1e-4);
    EXPECT_FALSE(text) << name << ": " << text.value_or("");
  }
}

Value moved(const Rewritten& rewritten, Value old) {
  return {rewritten.graph.get(), rewritten.was[index_of(old.id)].value()};
}

TEST(FuseActivations, KeepsValuesAndGradients) {
  Graph graph;
  const Value y = network(images(graph));
  const Rewritten fused = fuse_activations(graph);
  EXPECT_LT(fused.graph->nodes().size(), graph.nodes().size());
  const auto actual = values_of(*fused.graph, moved(fused, y));
  expect_equal(values_of(graph, y), actual);
}

TEST(FuseActivations, PutsJoinAndReluIntoTheNormBeforeThem) {
  Graph graph;
  residual_block(images(graph), 6);
  const Rewritten fused = fuse_activations(graph);
  EXPECT_THAT(ops_of(*fused.graph),
              ElementsAre("conv", "batch_norm", "conv", "batch_norm", "conv", "batch_norm"));
  const auto& last = dynamic_cast<const BatchNorm&>(*fused.graph->nodes().back().op);
  EXPECT_TRUE(last.attributes.relu);
  EXPECT_TRUE(last.attributes.residual);
}

// The gradient of the branch that ends last can then be complete before that of the other begins.
TEST(FuseActivations, PutsAJoinOfTwoNormsIntoTheOneThatRunsLast) {
  for (const bool shortcut_first : {false, true}) {
    Graph graph;
    const Value x = images(graph);
    const Value shortcut = conv_bn(x, {.filters = 6, .relu = false}, norm);
    const Value main = conv_bn(x, {.filters = 6, .kernel = 3, .relu = false}, norm);
    relu(shortcut_first ? add(shortcut, main) : add(main, shortcut));
    const Rewritten fused = fuse_activations(graph);
    ASSERT_THAT(ops_of(*fused.graph), ElementsAre("conv", "batch_norm", "conv", "batch_norm"));
    const std::span<const Node> nodes = fused.graph->nodes();
    EXPECT_FALSE(dynamic_cast<const BatchNorm&>(*nodes[1].op).attributes.residual);
    EXPECT_EQ(nodes[3].inputs.front(), nodes[2].outputs.front());
    EXPECT_EQ(nodes[3].inputs.back(), nodes[1].outputs.front());
  }
}

TEST(FuseActivations, PutsAReluIntoWhatComesBeforeIt) {
  Graph graph;
  const Value x = images(graph);
  const Value y = conv(x, {.filters = 5});
  const Value sum = relu(add(y, x));
  dense(spatial_mean(sum), {.units = 3});
  EXPECT_THAT(ops_of(*fuse_activations(graph).graph),
              ElementsAre("conv", "add", "spatial_mean", "dense"));
}

TEST(FuseActivations, LeavesAValueThatOthersRead) {
  Graph graph;
  const Value y = conv(images(graph), {.filters = 5, .relu = false});
  const Value both[] = {relu(y), y};
  concat(both);
  EXPECT_THAT(ops_of(*fuse_activations(graph).graph), ElementsAre("conv", "relu", "concat"));
}

TEST(FuseActivations, LeavesAValueThatIsAnOutputOfTheGraph) {
  Graph graph;
  const Value y = conv(images(graph), {.filters = 5, .relu = false});
  relu(y);
  graph.output("y", y);
  EXPECT_THAT(ops_of(*fuse_activations(graph).graph), ElementsAre("conv", "relu"));
}

// MobileNet's blocks. The factor makes the limit act.
Value limited_block(Value x) {
  const Value y = relu6(scale(conv_bn(x, {.filters = 6, .relu = false}, norm), 9));
  return relu6(conv_bn(y, {.filters = 4, .kernel = 3, .relu = false}, norm));
}

TEST(FuseActivations, PutsARelu6IntoANormOfATrainingStep) {
  Graph graph;
  const Value y = limited_block(images(graph));
  const Rewritten fused = fuse_activations(graph);
  EXPECT_THAT(ops_of(*fused.graph),
              ElementsAre("conv", "batch_norm", "scale", "relu", "conv", "batch_norm"));
  EXPECT_EQ(dynamic_cast<const BatchNorm&>(*fused.graph->nodes().back().op).attributes.limit, 6);
  const auto actual = values_of(*fused.graph, moved(fused, y));
  expect_equal(values_of(graph, y), actual);
}

TEST(FuseActivations, LeavesARelu6ThatNothingBeforeItCanLimit) {
  Graph graph;
  relu6(conv(images(graph), {.filters = 5, .relu = false}));
  EXPECT_THAT(ops_of(*fuse_activations(graph).graph), ElementsAre("conv", "relu"));
  Graph residual;
  const Value x = images(residual);
  relu6(add(conv_bn(x, {.filters = 5, .relu = false}, norm), x));
  EXPECT_THAT(ops_of(*fuse_activations(residual).graph),
              ElementsAre("conv", "batch_norm", "add", "relu"));
}

// The norm goes into the convolution's weights, whose epilogue has no limit.
TEST(FuseActivations, LeavesARelu6OfAnInferenceStep) {
  Graph graph({.training = false});
  const Value y = limited_block(images(graph));
  const Rewritten fused = fuse_activations(graph);
  const Rewritten folded = fold_batch_norms(*fused.graph);
  EXPECT_THAT(ops_of(*folded.graph), ElementsAre("fold_batch_norm", "conv", "scale", "relu",
                                                 "fold_batch_norm", "conv", "relu"));
  const auto actual = values_of(*folded.graph, moved(folded, moved(fused, y)));
  expect_equal(values_of(graph, y), actual);
}

TEST(FuseActivations, CarriesInputsParametersAndOutputsOver) {
  Graph graph;
  graph.output("y", conv(images(graph), {.filters = 5}));
  const Rewritten fused = fuse_activations(graph);
  EXPECT_TRUE(fused.graph->find("v/cg/conv0/conv2d/kernel"));
  EXPECT_EQ(fused.graph->inputs().size(), 1);
  ASSERT_EQ(fused.graph->outputs().size(), 1);
  EXPECT_EQ(fused.graph->producer(fused.graph->outputs()[0].tensor), NodeId{0});
}

TEST(FoldBatchNorms, KeepsValues) {
  Graph graph({.training = false});
  const Value y = network(images(graph));
  const Rewritten fused = fuse_activations(graph);
  const Rewritten folded = fold_batch_norms(*fused.graph);
  for (const Node& node : folded.graph->nodes()) {
    EXPECT_NE(node.op->name(), "batch_norm_inference");
    EXPECT_NE(node.op->name(), "relu");
  }
  const auto actual = values_of(*folded.graph, moved(folded, moved(fused, y)));
  expect_equal(values_of(graph, y), actual);
}

// A convolution's epilogue has no limit.
TEST(FoldBatchNorms, LeavesANormWhoseReluHasALimit) {
  Graph graph({.training = false});
  const Value y = conv(images(graph), {.filters = 5, .relu = false});
  const auto vector = [&](const char* name) {
    return graph.parameter(name, described({5}, DataType::f32), {});
  };
  emit_all(BatchNormInference({.relu = true, .limit = 6, .variables = {}}),
           std::vector<Value>{y, vector("beta"), vector("mean"), vector("variance")});
  EXPECT_THAT(ops_of(*fold_batch_norms(graph).graph), ElementsAre("conv", "batch_norm_inference"));
}

TEST(FoldBatchNorms, LeavesANormThatFollowsNoConvolution) {
  Graph graph({.training = false});
  const Value x = images(graph);
  batch_norm(max_pool(x, {}), norm);
  EXPECT_THAT(ops_of(*fold_batch_norms(graph).graph),
              ElementsAre("max_pool", "batch_norm_inference"));
}

TEST(FoldBatchNorms, LeavesAConvolutionWhoseResultOthersRead) {
  Graph graph({.training = false});
  const Value y = conv(images(graph), {.filters = 5, .relu = false});
  const Value both[] = {batch_norm(y, norm), y};
  concat(both);
  EXPECT_THAT(ops_of(*fold_batch_norms(graph).graph),
              ElementsAre("conv", "batch_norm_inference", "concat"));
}

}  // namespace
}  // namespace cnn::layers
