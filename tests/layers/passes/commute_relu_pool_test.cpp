#include "layers/passes/commute_relu_pool.h"

#include <cstring>
#include <gtest/gtest.h>

#include "layers/activation.h"
#include "layers/conv.h"
#include "layers/elementwise.h"
#include "layers/operands.h"
#include "layers/passes/fuse.h"
#include "layers/pool.h"
#include "tests/layers/gradient_outputs.h"
#include "tests/support/interpreter.h"

namespace cnn::layers {
namespace {

using Network = Value (*)(Value);

Value conv_relu(Value x) { return conv(x, {.filters = 4, .kernel = 3}); }
Value bare(Value x) { return conv(x, {.filters = 3, .relu = false}); }

Value pooled(Value x) { return bare(max_pool(conv_relu(x), {})); }
// Windows overlap and reach beyond the edge: several gradients arrive at one pixel.
Value overlapping(Value x) {
  return bare(max_pool(conv_relu(x), {.kernel = 3, .stride = 2, .padding = Padding::same}));
}
Value clipped(Value x) {
  return bare(max_pool(relu6(scale(conv(x, {.filters = 4, .relu = false}), 9)), {}));
}
Value twice(Value x) { return bare(max_pool(conv_relu(max_pool(conv_relu(x), {})), {})); }
Value branched(Value x) {  // the ReLU's output goes elsewhere too
  const Value y = conv_relu(x);
  return add(bare(max_pool(y, {.kernel = 3, .stride = 1, .padding = Padding::same})), bare(y));
}
Value averaged(Value x) { return bare(average_pool(conv_relu(x), {})); }
Value linear(Value x) { return bare(max_pool(bare(x), {})); }

// The gradients of sum(y dy) by all parameters are the graph's outputs.
std::shared_ptr<Graph> step_of(Network network) {
  Graph forward;
  const Value y = network(forward.input("x", described({2, 3, 9, 7}, DataType::f32)));
  const Rewritten fused = fuse_activations(forward);
  Graph& graph = *fused.graph;
  const Value end{&graph, fused.was[index_of(y.id)].value()};
  tests::output_gradients(graph, end, graph.input("dy", end.desc()));
  return fused.graph;
}

// How many gates are opened by what a max pool made.
std::size_t gates_behind_pools(const Graph& graph) {
  std::size_t count = 0;
  for (const Node& node : graph.nodes()) {
    if (dynamic_cast<const ReluBackward*>(node.op.get()) != nullptr) {
      const Node& opener = graph.nodes()[index_of(graph.producer(node.inputs[1]).value())];
      count += dynamic_cast<const MaxPool*>(opener.op.get()) != nullptr ? 1 : 0;
    }
  }
  return count;
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

TEST(PooledGates, KeepEveryBitOfEveryGradient) {
  for (const Network network : {pooled, overlapping, clipped, twice, branched, averaged, linear}) {
    const std::shared_ptr<Graph> before = step_of(network);
    expect_same_outputs(*before, *commute_relu_pool(*before).graph);
  }
}

TEST(PooledGates, AreOpenedByTheSmallerImage) {
  for (const Network network : {pooled, overlapping, clipped}) {
    const std::shared_ptr<Graph> before = step_of(network);
    EXPECT_EQ(gates_behind_pools(*before), 0);
    const std::shared_ptr<Graph> after = commute_relu_pool(*before).graph;
    EXPECT_EQ(gates_behind_pools(*after), 1);
    EXPECT_EQ(after->nodes().size(), before->nodes().size());
  }
  EXPECT_EQ(gates_behind_pools(*commute_relu_pool(*step_of(twice)).graph), 2);
}

TEST(PooledGates, StayWhereOtherGradientsArriveOrThePoolTakesNoMaximum) {
  for (const Network network : {branched, averaged, linear}) {
    EXPECT_EQ(gates_behind_pools(*commute_relu_pool(*step_of(network)).graph), 0);
  }
}

}  // namespace
}  // namespace cnn::layers
