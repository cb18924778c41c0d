#include "runtime/graph.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/error.h"
#include "tests/support/test_ops.h"

namespace cnn {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using tests::Combine;
using tests::floats;
using tests::Scale;
using tests::SumAndDifference;

TEST(Graph, NumbersNodesInTheOrderTheyAreAdded) {
  Graph graph;
  const Value x = graph.input("x", floats(4));
  const Value y = emit(Scale(2), {x});
  const Value z = emit(Combine(), {y, x});
  ASSERT_EQ(graph.nodes().size(), 2U);
  EXPECT_THAT(graph.nodes()[1].inputs, ElementsAre(y.id, x.id));
  EXPECT_THAT(graph.nodes()[1].outputs, ElementsAre(z.id));
  EXPECT_EQ(graph.producer(z.id), NodeId{1});
  EXPECT_EQ(graph.producer(x.id), std::nullopt);
}

TEST(Graph, GivesEachTensorItsRole) {
  Graph graph;
  const Value x = graph.input("x", floats(1));
  const Value w = graph.parameter("w", floats(1), {});
  const Value s = graph.state("s", floats(1), {}, true);
  const Value y = emit(Scale(2), {x});
  EXPECT_EQ(graph.info(x.id).role, Role::input);
  EXPECT_EQ(graph.info(w.id).role, Role::parameter);
  EXPECT_EQ(graph.info(s.id).role, Role::state);
  EXPECT_EQ(graph.info(y.id).role, Role::activation);
  EXPECT_THAT(graph.inputs(), ElementsAre(x.id));
}

TEST(Graph, ReturnsAllOutputsOfANode) {
  Graph graph;
  const std::vector<Value> in{graph.input("a", floats(3)), graph.input("b", floats(3))};
  const std::vector<Value> out = emit_all(SumAndDifference(), std::span<const Value>(in));
  ASSERT_EQ(out.size(), 2U);
  EXPECT_EQ(out[1].desc(), floats(3));
  EXPECT_EQ(graph.producer(out[1].id), NodeId{0});
}

TEST(Graph, RefusesATensorOfAnotherGraph) {
  Graph one;
  Graph other;
  const Value a = one.input("a", floats(1));
  const Value b = other.input("b", floats(1));
  EXPECT_THROW(emit(Combine(), {a, b}), Error);
}

TEST(Graph, RefusesTwoParametersOfOneName) {
  Graph graph;
  graph.parameter("w", floats(1), {});
  EXPECT_THROW(graph.parameter("w", floats(1), {}), Error);
}

TEST(Graph, RefusesTwoProducersOfATensor) {
  Graph graph;
  const Value x = graph.input("x", floats(1));
  const Value y = emit(Scale(2), {x});
  EXPECT_THROW(graph.add_node(graph.nodes()[index_of(*graph.producer(y.id))]), Error);
}

TEST(Graph, NumbersNamesByKindAndPutsTheScopeInFront) {
  Graph graph;
  EXPECT_EQ(graph.unique_name("conv"), "v/cg/conv0");
  {
    const NameScope scope(graph, "block");
    EXPECT_EQ(graph.unique_name("conv"), "v/cg/block/conv1");
    EXPECT_EQ(graph.unique_name("dense"), "v/cg/block/dense0");
  }
  EXPECT_EQ(graph.unique_name("conv"), "v/cg/conv2");
}

TEST(Graph, GivesLayersTheNamesThatANetworkChooses) {
  Graph graph;
  EXPECT_EQ(graph.scoped_name("conv2d_1"), "v/cg/conv2d_1");
  {
    const NameScope scope(graph, "resnet_model", NameScope::Position::replaces_innermost);
    EXPECT_EQ(graph.scoped_name("dense"), "v/resnet_model/dense");
    const NameScope inner(graph, "block");
    EXPECT_EQ(graph.unique_name("conv"), "v/resnet_model/block/conv0");
  }
  EXPECT_EQ(graph.scoped_name("x"), "v/cg/x");
  Graph short_scope(Traits{.scope = "v/"});
  const NameScope scope(short_scope, "other", NameScope::Position::replaces_innermost);
  EXPECT_EQ(short_scope.scoped_name("x"), "other/x");
}

TEST(Graph, FindsATensorByName) {
  Graph graph;
  const Value w = graph.parameter("w", floats(1), {});
  EXPECT_EQ(graph.find("w"), w.id);
  EXPECT_EQ(graph.find("v"), std::nullopt);
}

TEST(Graph, ListsItsOutputs) {
  Graph graph;
  EXPECT_THAT(graph.outputs(), IsEmpty());
  graph.output("loss", graph.input("x", floats(1)));
  EXPECT_EQ(graph.outputs()[0].name, "loss");
}

TEST(Op, HasNoGradientUnlessItSaysSo) { EXPECT_THROW(Scale(2).backward({}), Error); }

TEST(Graph, RefusesATensorThatNoMemoryHolds) {
  Graph graph;
  graph.input("large", {Shape{1, 1LL << 24, 1LL << 24}, DataType::f32});
  EXPECT_THROW(graph.input("x", {Shape{2, 1LL << 24, 1LL << 24}, DataType::f32}), DoesNotFit);
  EXPECT_THROW(graph.input("x", {Shape{1LL << 40, 1LL << 40}, DataType::f32}), DoesNotFit);
}

}  // namespace
}  // namespace cnn
