#include "layers/passes/fuse_gradients.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <gtest/gtest.h>
#include <map>
#include <string>

#include "layers/activation.h"
#include "layers/batch_norm.h"
#include "layers/conv.h"
#include "layers/elementwise.h"
#include "layers/operands.h"
#include "layers/passes/fuse.h"
#include "layers/passes/fuse_conv.h"
#include "layers/pool.h"
#include "runtime/cpu/reference_kernel.h"
#include "tests/layers/gradient_outputs.h"
#include "tests/support/interpreter.h"

namespace cnn::layers {
namespace {

constexpr BatchNormOptions norm{.epsilon = 1e-5, .scale = true};

using Network = Value (*)(Value);

Value bare(Value x, std::int64_t filters) {
  return conv(x, {.filters = filters, .bias = false, .relu = false});
}
Value unit(Value x, std::int64_t filters) { return conv_bn(x, {.filters = filters}, norm); }
Value last_unit(Value x, std::int64_t filters) {
  return conv_bn(x, {.filters = filters, .relu = false}, norm);
}
Value block(Value x) { return relu(add(last_unit(unit(x, 3), 6), x)); }
Value projected_block(Value x) { return relu(add(last_unit(unit(x, 3), 6), last_unit(x, 6))); }

// No one needs the images' gradient. Two gradients arrive at the end of each block except the last.
Value blocks(Value x) { return block(projected_block(block(projected_block(x)))); }
// Returns a block in which the gradients of two convolutions join before a norm without a residual.
Value preactivated_block(Value x) {
  const Value activated = relu(batch_norm(bare(x, 6), norm));
  return add(bare(unit(activated, 3), 5), bare(activated, 5));
}
// Returns a block in which the gradients of two convolutions join before a norm without a ReLU.
Value linear_block(Value x) {
  const Value y = last_unit(x, 6);
  return add(bare(y, 4), bare(y, 4));
}
Value branches(Value x) {  // three gradients join
  const Value y = unit(x, 6);
  return add(add(bare(y, 4), bare(y, 4)), bare(y, 4));
}
Value linear_bottlenecks(Value x) {  // a gradient passes a norm and continues to another addition
  const Value first = last_unit(x, 6);
  const Value second = add(first, last_unit(unit(first, 8), 6));
  return add(second, last_unit(unit(second, 8), 6));
}

// Returns a step whose outputs are the gradients of sum(y dy) with respect to all parameters.
std::shared_ptr<Graph> step_of(Network network, DataType type) {
  Graph forward({.compute = type});
  const Value y = network(forward.input("x", described({2, 5, 4, 3}, type)));
  const Rewritten fused = fuse_activations(forward);
  Graph& graph = *fused.graph;
  const Value end{&graph, fused.was[index_of(y.id)].value()};
  tests::output_gradients(graph, end, graph.input("dy", end.desc()));
  return fused.graph;
}

std::map<std::string, std::size_t> counts(const Graph& graph) {
  std::map<std::string, std::size_t> result;
  for (const Node& node : graph.nodes()) {
    const auto* norm_backward = dynamic_cast<const BatchNormBackward*>(node.op.get());
    ++result[std::string(node.op->name())];
    result["joined"] += norm_backward != nullptr && norm_backward->joined ? 1 : 0;
  }
  return result;
}

std::shared_ptr<Graph> joined(Network network) {
  return fuse_gradient_adds(*step_of(network, DataType::f32)).graph;
}

void expect_same_outputs(const Graph& before, const Graph& after) {
  tests::Interpreter expected(before);
  tests::Interpreter actual(after);
  expected.run();
  actual.run();
  ASSERT_EQ(before.outputs().size(), after.outputs().size());
  for (std::size_t i = 0; i < before.outputs().size(); ++i) {
    const TensorView one = expected.view(before.outputs()[i].tensor);
    const TensorView other = actual.view(after.outputs()[i].tensor);
    EXPECT_EQ(std::memcmp(one.data, other.data, one.desc.bytes()), 0) << i;
  }
}

TEST(JoinGradients, KeepsEveryBitOfEveryGradient) {
  for (const Network network :
       {blocks, preactivated_block, linear_block, branches, linear_bottlenecks}) {
    const std::shared_ptr<Graph> before = step_of(network, DataType::f32);
    expect_same_outputs(*before, *fuse_gradient_adds(*before).graph);
  }
}

TEST(JoinGradients, AddsInTheNormOfEachBlocksEnd) {
  auto before = counts(*step_of(blocks, DataType::f32));
  EXPECT_EQ(before["add"], 3);
  EXPECT_EQ(before["joined"], 0);
  auto after = counts(*joined(blocks));
  EXPECT_EQ(after["add"], 0);
  EXPECT_EQ(after["joined"], 3);
  EXPECT_EQ(after["batch_norm_backward"], before["batch_norm_backward"]);
}

TEST(JoinGradients, AddsInNormsWithoutAResidualOrAReLU) {
  for (const Network network : {preactivated_block, linear_block}) {
    auto after = counts(*joined(network));
    EXPECT_EQ(after["add"], 1);  // the addition of the forward pass
    EXPECT_EQ(after["joined"], 1);
  }
}

TEST(JoinGradients, LeavesASumOfMoreThanTwo) {
  auto after = counts(*joined(branches));
  EXPECT_EQ(after["add"], 2 + 1);
  EXPECT_EQ(after["joined"], 0);
}

// Each sum in the blocks has 2 x 6 x 4 x 3 elements.
TEST(JoinGradients, LeavesASumOfMoreBytesThanItIsTold) {
  const std::shared_ptr<Graph> before = step_of(blocks, DataType::f32);
  constexpr std::size_t bytes = 2 * 6 * 4 * 3 * sizeof(float);
  EXPECT_EQ(counts(*fuse_gradient_adds(*before, bytes).graph)["joined"], 3);
  const std::shared_ptr<Graph> after = fuse_gradient_adds(*before, bytes - 1).graph;
  EXPECT_EQ(counts(*after)["joined"], 0);
  EXPECT_EQ(counts(*after)["add"], 3);
  expect_same_outputs(*before, *after);
}

TEST(JoinGradients, LeavesASumThatAnotherJoinReads) {
  auto after = counts(*joined(linear_bottlenecks));
  EXPECT_EQ(after["add"], 2 + 1);
  EXPECT_EQ(after["joined"], 1);
}

TEST(JoinGradients, LeavesASumThatIsAnOutputOfTheGraph) {
  const std::shared_ptr<Graph> graph = step_of(linear_block, DataType::f32);
  for (const Node& node : graph->nodes()) {
    if (dynamic_cast<const BatchNormBackward*>(node.op.get()) != nullptr) {
      graph->output("sum", {graph.get(), node.inputs[5]});
    }
  }
  auto after = counts(*fuse_gradient_adds(*graph).graph);
  EXPECT_EQ(after["add"], 2);
  EXPECT_EQ(after["joined"], 0);
}

TEST(JoinGradients, ChangesNothingTheSecondTime) {
  const std::shared_ptr<Graph> once = joined(blocks);
  EXPECT_EQ(counts(*fuse_gradient_adds(*once).graph), counts(*once));
}

KernelTable table_of(const std::function<bool(const Op&)>& accepts) {
  KernelTable table;
  table.otherwise(
      [accepts](const Op& op, const Signature& request) {
        return accepts(op) ? std::optional(KernelSpec{.in = request.in, .out = request.out})
                           : std::nullopt;
      },
      [](const Op& op, const Signature& /*signature*/) {
        return std::make_unique<ReferenceKernel>(op);
      });
  return table;
}

bool accepts_all(const Op& /*op*/) { return true; }

std::shared_ptr<Graph> masked(const Graph& graph,
                              const std::function<bool(const Op&)>& accepts = accepts_all) {
  return store_relu_masks(graph, table_of(accepts), Layout::nhwc).graph;
}

std::size_t masks_of(const Graph& graph) {
  return static_cast<std::size_t>(std::ranges::count_if(
      graph.tensors(), [](const TensorInfo& info) { return info.desc.type == DataType::u8; }));
}

// Returns the graph of a backend that fuses convolutions, as the program builds it.
std::shared_ptr<Graph> fused(Network network) {
  const std::shared_ptr<Graph> graph = step_of(network, DataType::f32);
  return fuse_gradient_adds(*fuse_convolutions(*graph, table_of(accepts_all), Layout::nhwc).graph)
      .graph;
}

TEST(MaskGates, KeepsEveryBitOfEveryGradient) {
  for (const std::shared_ptr<Graph>& before : {joined(blocks), fused(blocks)}) {
    expect_same_outputs(*before, *masked(*before));
  }
}

// Two of the four blocks have a projection; each ends with an addition and a ReLU.
TEST(MaskGates, MakesOneForTheEndOfEachBlock) {
  for (const std::shared_ptr<Graph>& before : {joined(blocks), fused(blocks)}) {
    const std::shared_ptr<Graph> after = masked(*before);
    EXPECT_EQ(masks_of(*after), 4);
    EXPECT_EQ(counts(*after), counts(*before));
    for (const Node& node : after->nodes()) {
      const auto* norm_backward = dynamic_cast<const BatchNormBackward*>(node.op.get());
      if (norm_backward != nullptr && norm_backward->passes_gradient()) {
        EXPECT_EQ(after->info(node.inputs.back()).desc.type, DataType::u8);
      }
    }
  }
}

TEST(MaskGates, MakesNoneWhereTheGateIsRecomputedOrOpen) {
  for (const Network network : {preactivated_block, linear_block, branches}) {
    EXPECT_EQ(masks_of(*masked(*joined(network))), 0);
  }
}

TEST(MaskGates, MakesNoneThatNoKernelMakesOrReads) {
  const auto makes = [](const Op& op) {
    const auto* norm_forward = dynamic_cast<const BatchNorm*>(&op);
    return norm_forward == nullptr || !norm_forward->attributes.mask;
  };
  const auto reads = [](const Op& op) {
    const auto* norm_backward = dynamic_cast<const BatchNormBackward*>(&op);
    return norm_backward == nullptr || !norm_backward->attributes.mask;
  };
  EXPECT_EQ(masks_of(*masked(*joined(blocks), makes)), 0);
  EXPECT_EQ(masks_of(*masked(*joined(blocks), reads)), 0);
}

TEST(MaskGates, ChangesNothingTheSecondTime) {
  const std::shared_ptr<Graph> once = masked(*joined(blocks));
  const std::shared_ptr<Graph> twice = masked(*once);
  EXPECT_EQ(counts(*twice), counts(*once));
  EXPECT_EQ(masks_of(*twice), masks_of(*once));
}

// The kernel must not round the sum before the gate: 2048 + 1 is not representable in f16.
TEST(JoinGradients, AddsInF32) {
  const BatchNormBackward op({.epsilon = 0, .variables = {}}, true);
  EXPECT_EQ(op.index_of_dy(), 4);
  float x[] = {1, -1}, beta[] = {0}, mean[] = {0}, variance[] = {1};
  float dy[] = {2048, 0}, dy2[] = {1, 1}, dx[2] = {}, dbeta[1] = {};
  const auto view = [](float* data, Shape shape, DataType type) {
    return TensorView{plain(described(shape, type)), reinterpret_cast<std::byte*>(data)};
  };
  const Shape image{2, 1, 1, 1};
  const TensorView in[] = {view(x, image, DataType::f16),  view(beta, {1}, DataType::f32),
                           view(mean, {1}, DataType::f32), view(variance, {1}, DataType::f32),
                           view(dy, image, DataType::f16), view(dy2, image, DataType::f16)};
  const TensorView out[] = {view(dx, image, DataType::f16), view(dbeta, {1}, DataType::f32)};
  op.reference(in, out);
  EXPECT_EQ(dbeta[0], 2050);  // 2049 + 1
}

}  // namespace
}  // namespace cnn::layers
