#include "bench/machine/step_costs.h"

#include <array>
#include <gtest/gtest.h>
#include <memory>
#include <vector>

#include "layers/activation.h"
#include "layers/batch_norm.h"
#include "layers/concat.h"
#include "layers/dense.h"
#include "runtime/error.h"

namespace cnn::bench {
namespace {

using layers::BatchNorm;
using layers::BatchNormBackward;
using layers::Dense;

// With 448 bytes and 1024 operations per second, all expected times are exact.
constexpr Ceilings slow_ceilings{.flops_per_second = 1024, .bytes_per_second = 448};

Value costed_state(Graph& graph, const char* name, const Shape& shape) {
  return graph.state(name, {shape}, {}, false);
}

// x [4,8] times w [8,16] takes 2*4*8*16 = 1024 operations on 128 + 512 + 256 = 896 bytes. The ReLU
// reads 256 bytes and writes 256.
std::shared_ptr<Graph> costed_dense_and_relu() {
  auto graph = std::make_shared<Graph>();
  const Value x = costed_state(*graph, "x", {4, 8});
  const Value w = costed_state(*graph, "w", {8, 16});
  const Value y = emit(Dense({.bias = false, .relu = false}), {x, w});
  graph->output("y", emit(layers::Relu(), {y}));
  return graph;
}

TEST(StepCosts, AreTheLargerOfArithmeticAndBytes) {
  const std::shared_ptr<Graph> graph = costed_dense_and_relu();
  const std::vector<NodeCost> by_bytes = node_costs(*graph, slow_ceilings);
  ASSERT_EQ(by_bytes.size(), 2U);
  EXPECT_EQ(by_bytes[0].flops, 1024);
  EXPECT_EQ(by_bytes[0].bytes, 896);
  EXPECT_EQ(by_bytes[0].seconds, 2);
  EXPECT_EQ(by_bytes[1].flops, 0);
  EXPECT_EQ(by_bytes[1].bytes, 512);
  const std::vector<NodeCost> by_flops =
      node_costs(*graph, {.flops_per_second = 256, .bytes_per_second = 448});
  EXPECT_EQ(by_flops[0].seconds, 4);
}

TEST(StepCosts, CountWhatMustBeReadTwice) {
  Graph graph;
  const Value x = costed_state(graph, "x", {2, 3, 4, 4});  // 384 bytes
  const Value beta = costed_state(graph, "beta", {3});
  const std::array<Value, 2> operands{x, beta};
  emit_all(BatchNorm({}), std::span<const Value>(operands));
  const Node& norm = graph.nodes().front();
  EXPECT_EQ(operand_bytes(graph, norm), 384 + 12 + 384 + 12 + 12);
  EXPECT_EQ(reread_bytes(graph, norm), 384);
  EXPECT_EQ(node_costs(graph, slow_ceilings)[0].bytes, 804 + 384);
}

// The kernel reads x and the gated gradient a second time. If the gated gradient is no output, it
// reads both gradients again instead.
TEST(StepCosts, CountASumOfGradientsOnceOrTwice) {
  Graph graph;
  const Value x = costed_state(graph, "x", {2, 3, 4, 4});  // 384 bytes
  const Value vector = costed_state(graph, "vector", {3});
  const std::array<Value, 6> plain{x, vector, vector, vector, x, x};
  emit_all(BatchNormBackward({.relu = true}, true), std::span<const Value>(plain));
  const std::array<Value, 7> passing{x, vector, vector, vector, x, x, x};
  emit_all(BatchNormBackward({.relu = true, .residual = true}, true),
           std::span<const Value>(passing));
  EXPECT_EQ(reread_bytes(graph, graph.nodes()[0]), 3 * 384);
  EXPECT_EQ(reread_bytes(graph, graph.nodes()[1]), 2 * 384);
}

TEST(StepCosts, CountTheGradientOfABiasAsAnotherReading) {
  Graph graph;
  const Value x = costed_state(graph, "x", {4, 8});
  const Value dy = costed_state(graph, "dy", {4, 16});  // 256 bytes
  emit(layers::DenseBackwardWeights({.bias = true, .relu = false}), {x, dy});
  emit(layers::DenseBackwardWeights({.bias = false, .relu = false}), {x, dy});
  EXPECT_EQ(reread_bytes(graph, graph.nodes()[0]), 256);
  EXPECT_EQ(reread_bytes(graph, graph.nodes()[1]), 0);
}

// The kernel needs half of the product's 1024 operations, at 256 per second.
TEST(StepCosts, CountTheOperationsThatAKernelNeeds) {
  const std::shared_ptr<const Graph> graph = costed_dense_and_relu();
  std::vector<KernelSpec> specs(2);
  specs[0].flops = 512;
  const Ceilings ceilings{.flops_per_second = 256, .bytes_per_second = 448};
  EXPECT_EQ(node_costs(*graph, ceilings, specs)[0].flops, 512);
  EXPECT_EQ(node_costs(*graph, ceilings, specs)[0].seconds, 2);
}

TEST(StepCosts, CountWhatAKernelMovesBetweenItsPasses) {
  const std::shared_ptr<Graph> graph = costed_dense_and_relu();
  std::vector<KernelSpec> specs(2);
  specs[0].extra_traffic = 448;
  const std::vector<NodeCost> costs = node_costs(*graph, slow_ceilings, specs);
  EXPECT_EQ(costs[0].bytes, 896 + 448);
  EXPECT_EQ(costs[0].seconds, 3);
  EXPECT_EQ(costs[1].bytes, 512);
  specs.pop_back();
  EXPECT_THROW(node_costs(*graph, slow_ceilings, specs), Error);
}

// Two parts of 2*4*1*3 floats form an image of twice the size, so they have 96, 96 and 192 bytes.
TEST(StepCosts, CountNothingOfAConcatForWhatLiesInPlace) {
  const TensorDesc part{.shape = {2, 4, 1, 3}, .layout = Layout::nhwc};
  const TensorDesc whole{.shape = {2, 8, 1, 3}, .layout = Layout::nhwc};
  for (const std::size_t in_place : {0U, 1U, 2U}) {
    Graph graph;
    const std::vector<TensorId> parts{graph.add_tensor({.name = "a", .desc = part}),
                                      graph.add_tensor({.name = "b", .desc = part})};
    const TensorId y = graph.add_tensor({.name = "y", .desc = whole});
    graph.add_node({.op = std::make_shared<layers::Concat>(), .inputs = parts, .outputs = {y}});
    graph.add_node({.op = std::make_shared<layers::Relu>(), .inputs = {parts[0]}, .outputs = {}});
    for (std::size_t i = 0; i < in_place; ++i) {
      graph.place_inside(parts[i], y, static_cast<std::int64_t>(4 * i));
    }
    EXPECT_EQ(operand_bytes(graph, graph.nodes()[0]), 384 - 192.0 * static_cast<double>(in_place));
    EXPECT_EQ(operand_bytes(graph, graph.nodes()[1]), 96) << "other nodes still read all of it";
  }
}

TEST(StepCosts, AreAddedUpByOpTheMostSecondsFirst) {
  const std::shared_ptr<Graph> graph = costed_dense_and_relu();
  const std::vector<OpCost> ops = costs_by_op(*graph, node_costs(*graph, slow_ceilings));
  ASSERT_EQ(ops.size(), 2U);
  EXPECT_EQ(ops[0].op, "dense");
  EXPECT_EQ(ops[0].nodes, 1U);
  EXPECT_EQ(ops[0].cost.seconds, 2);
  EXPECT_EQ(ops[1].op, "relu");
  EXPECT_EQ(ops[1].cost.bytes, 512);
}

// The graph has two products of 1024 operations and one ReLU.
TEST(StepCosts, AddTheNodesOfOneOp) {
  Graph graph;
  const Value x = costed_state(graph, "x", {4, 8});
  const Value w = costed_state(graph, "w", {8, 16});
  for (int i = 0; i < 2; ++i) {
    emit(Dense({.bias = false, .relu = false}), {x, w});
  }
  const std::vector<NodeCost> costs = node_costs(graph, slow_ceilings);
  const std::vector<OpCost> ops = costs_by_op(graph, costs);
  ASSERT_EQ(ops.size(), 1U);
  EXPECT_EQ(ops[0].nodes, 2U);
  EXPECT_EQ(ops[0].cost.flops, 2048);
  EXPECT_EQ(ops[0].cost.bytes, 2 * costs[0].bytes);
  EXPECT_EQ(ops[0].cost.seconds, 4);
}

TEST(StepCosts, RejectAnotherGraph) {
  const std::shared_ptr<Graph> graph = costed_dense_and_relu();
  EXPECT_THROW(costs_by_op(*graph, {}), Error);
  EXPECT_THROW(costs_by_op(*graph, std::vector<NodeCost>(3)), Error);
  EXPECT_TRUE(costs_by_op(Graph(), {}).empty());
}

}  // namespace
}  // namespace cnn::bench
