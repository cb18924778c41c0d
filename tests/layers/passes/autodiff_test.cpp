#include "layers/passes/autodiff.h"

#include <algorithm>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "layers/activation.h"
#include "layers/conv.h"
#include "layers/dense.h"
#include "layers/elementwise.h"
#include "layers/operands.h"
#include "tests/support/interpreter.h"

namespace cnn::layers {
namespace {

using testing::ElementsAre;

std::vector<std::string> ops_from(const Graph& graph, std::size_t first) {
  std::vector<std::string> names;
  for (const Node& node : graph.nodes().subspan(first)) {
    names.emplace_back(node.op->name());
  }
  return names;
}

Value input(Graph& graph, const char* name, Shape shape = {2}) {
  return graph.input(name, described(shape, DataType::f32));
}

TEST(Gradients, AddsOnceWhereSeveralGradientsMeet) {
  Graph graph;
  const Value x = input(graph, "x");
  const Value y = add(add(scale(x, 2), scale(x, 3)), scale(x, 5));
  const std::size_t forward = graph.nodes().size();
  const auto dx = gradients(y, std::vector{x}, input(graph, "seed"));

  EXPECT_THAT(ops_from(graph, forward), ElementsAre("scale", "scale", "scale", "add"));
  tests::Interpreter values(graph);
  values.floats("seed")[0] = 1;
  values.floats("seed")[1] = -2;
  values.run();
  EXPECT_THAT(values.floats(*dx[0]), ElementsAre(10, -20));
}

TEST(Gradients, AddsInTheOrderInWhichConsumersRanBackwards) {
  Graph graph;
  const Value x = input(graph, "x");
  const Value first = scale(x, 2);
  const Value second = scale(x, 3);
  const auto dx = gradients(add(first, second), std::vector{x}, input(graph, "seed"));

  const Node& sum = graph.nodes()[index_of(*graph.producer(dx[0]->id))];
  const auto factor_of = [&](TensorId id) {
    const auto& op = graph.nodes()[index_of(*graph.producer(id))].op;
    return dynamic_cast<const Scale&>(*op).factor;
  };
  EXPECT_EQ(factor_of(sum.inputs[0]), 3);  // the backward pass reaches the later consumer first
  EXPECT_EQ(factor_of(sum.inputs[1]), 2);
}

// The slices of a batch share their parameters, so several gradients of one parameter arrive.
TEST(Gradients, AddsThoseOfAParameterAsTheyArriveWithTheBitsOfOneSum) {
  Graph graph;
  const Value x = input(graph, "x", {64});
  const Value w = graph.parameter("w", described({64}, DataType::f32), {});
  std::vector<Value> of_x, of_w;
  for (const float factor : {0.3F, 1.7F, -2.9F, 0.01F}) {
    of_x.push_back(scale(x, factor));
    of_w.push_back(scale(w, factor));
  }
  const Value sums[] = {emit_all(Add(), of_x).front(), emit_all(Add(), of_w).front()};
  const Value y = add(sums[0], sums[1]);
  const std::size_t forward = graph.nodes().size();
  const auto result = gradients(y, std::vector{x, w}, input(graph, "seed", {64}));

  std::vector<std::size_t> terms;
  for (const Node& node : graph.nodes().subspan(forward)) {
    if (node.op->name() == "add") {
      terms.push_back(node.inputs.size());
    }
  }
  EXPECT_THAT(terms, ElementsAre(2, 2, 2, 4));
  tests::Interpreter values(graph);
  for (std::size_t i = 0; i < 64; ++i) {
    values.floats("seed")[i] = 1.0F / (static_cast<float>(i) + 3);
  }
  values.run();
  const auto one_sum = values.floats(*result[0]), chain = values.floats(*result[1]);
  EXPECT_TRUE(std::ranges::equal(one_sum, chain));
  EXPECT_NE(one_sum[0], 0);
}

TEST(Gradients, BuildsNoDataGradientOfTheFirstLayer) {
  Graph graph;
  const Value images = input(graph, "images", {2, 3, 8, 8});
  const Value hidden = conv(images, {.filters = 4, .kernel = 3});
  const Value y = dense(flatten(hidden), {.units = 5, .relu = false});
  std::vector<Value> parameters;
  for (const char* name : {"v/cg/conv0/conv2d/kernel", "v/cg/conv0/biases", "v/cg/affine0/weights",
                           "v/cg/affine0/biases"}) {
    parameters.push_back({&graph, *graph.find(name)});
  }
  const std::size_t forward = graph.nodes().size();
  const auto result = gradients(y, parameters, input(graph, "seed", {2, 5}));

  EXPECT_THAT(ops_from(graph, forward),
              ElementsAre("dense_backward_weights", "dense_backward_data", "unflatten",
                          "relu_backward", "conv_backward_weights"));
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    ASSERT_TRUE(result[i]);
    EXPECT_EQ(result[i]->desc().shape, parameters[i].desc().shape);
  }
}

TEST(Gradients, BuildsNothingForWhatTheLossDoesNotDependOn) {
  Graph graph;
  const Value x = input(graph, "x");
  const Value other = input(graph, "other");
  relu(other);  // the loss does not depend on this branch
  const Value y = scale(x, 2);
  const std::size_t forward = graph.nodes().size();
  const auto result = gradients(y, std::vector{other, x}, input(graph, "seed"));

  EXPECT_FALSE(result[0]);
  EXPECT_TRUE(result[1]);
  EXPECT_THAT(ops_from(graph, forward), ElementsAre("scale"));
}

TEST(Gradients, AreTheSeedForTheLossItself) {
  Graph graph;
  const Value x = input(graph, "x");
  const Value y = scale(x, 2);
  const Value seed = input(graph, "seed");
  EXPECT_EQ(gradients(y, std::vector{y}, seed).front(), seed);
}

TEST(Gradients, PassThroughAJoinWithoutANode) {
  Graph graph;
  const Value a = input(graph, "a");
  const Value b = input(graph, "b");
  const Value seed = input(graph, "seed");
  const Value y = add(a, b);
  const std::size_t forward = graph.nodes().size();
  EXPECT_THAT(gradients(y, std::vector{a, b}, seed), ElementsAre(seed, seed));
  EXPECT_EQ(graph.nodes().size(), forward);
}

TEST(Gradients, ReachATensorInTheMiddleOfTheGraph) {
  Graph graph;
  const Value x = input(graph, "x");
  const Value middle = scale(x, 2);
  const Value y = add(scale(middle, 3), scale(middle, 4));
  const auto result = gradients(y, std::vector{x, middle}, input(graph, "seed"));

  tests::Interpreter values(graph);
  values.floats("seed")[0] = 1;
  values.run();
  EXPECT_EQ(values.floats(*result[0])[0], 14);
  EXPECT_EQ(values.floats(*result[1])[0], 7);
}

}  // namespace
}  // namespace cnn::layers
