#include "bench/report/graph_def.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "layers/activation.h"
#include "layers/concat.h"
#include "tests/support/events.h"
#include "tests/support/test_ops.h"

namespace cnn::bench {
namespace {

using testing::ElementsAre;

using GraphDefFields = std::multimap<std::uint64_t, std::string>;

// Returns the fields of a graph's nodes by name.
std::map<std::string, GraphDefFields> graph_def_nodes(const Graph& graph) {
  const std::vector<std::byte> bytes = graph_def(graph);
  const auto fields = tests::fields_of({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  std::map<std::string, GraphDefFields> nodes;
  for (auto [node, end] = fields.equal_range(1); node != end; ++node) {
    const GraphDefFields inner = tests::fields_of(node->second);
    nodes.emplace(tests::field(inner, 1), inner);
  }
  return nodes;
}

std::vector<std::string> graph_def_inputs(const GraphDefFields& node) {
  std::vector<std::string> inputs;
  for (auto [input, end] = node.equal_range(3); input != end; ++input) {
    inputs.push_back(input->second);
  }
  return inputs;
}

// Returns an attribute's value, in which field 1 is a list and field 6 a type.
GraphDefFields graph_def_attribute(const GraphDefFields& node, const std::string& name) {
  for (auto [attribute, end] = node.equal_range(5); attribute != end; ++attribute) {
    const GraphDefFields entry = tests::fields_of(attribute->second);
    if (tests::field(entry, 1) == name) {
      return tests::fields_of(tests::field(entry, 2));
    }
  }
  return {};
}

TEST(GraphDef, HasEveryOperationVariableAndEdge) {
  Graph graph;
  const Value image = graph.input("images", {Shape{2, 3}, DataType::f32});
  const Value result = layers::relu(layers::relu(image));
  graph.output("result", result);
  const std::vector<std::byte> bytes = graph_def(graph);
  const auto fields = tests::fields_of({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  std::vector<std::string> nodes;
  for (auto [node, end] = fields.equal_range(1); node != end; ++node) {
    const auto inner = tests::fields_of(node->second);
    nodes.push_back(tests::field(inner, 1) + " = " + tests::field(inner, 2) + " of " +
                    tests::field(inner, 3));
  }
  EXPECT_THAT(nodes, ElementsAre("images = Placeholder of ", "relu#0 = relu of images",
                                 "relu#1 = relu of relu#0"));
}

TEST(GraphDef, NamesTheSecondOutputOfANodeByItsNumber) {
  Graph graph;
  const Value x = graph.input("x", tests::floats(2));
  const std::vector<Value> pair{x, x};
  const std::vector<Value> both = emit_all(tests::SumAndDifference(), std::span<const Value>(pair));
  emit(tests::Combine(), {both[1], both[0]});
  EXPECT_THAT(graph_def_inputs(graph_def_nodes(graph).at("combine#1")),
              ElementsAre("sum_and_difference#0:1", "sum_and_difference#0"));
}

TEST(GraphDef, HasVariablesWithTheirTypeAndShape) {
  Graph graph;
  const Value w = graph.parameter("w", {.shape = {300, 2}, .type = DataType::bf16}, {});
  graph.output("y", emit(layers::Relu(), {w}));
  const auto nodes = graph_def_nodes(graph);
  EXPECT_EQ(tests::field(nodes.at("w"), 2), "VariableV2");
  for (const char* const name : {"w", "relu#0"}) {
    const auto type = graph_def_attribute(nodes.at(name), "T");
    EXPECT_EQ(tests::number_in<std::int64_t>(tests::field(type, 6), 0), 14) << "DT_BFLOAT16";
    const auto list =
        tests::fields_of(tests::field(graph_def_attribute(nodes.at(name), "_output_shapes"), 1));
    const auto shape = tests::fields_of(tests::field(list, 7));
    std::vector<std::int64_t> sizes;
    for (auto [size, end] = shape.equal_range(2); size != end; ++size) {
      const auto dimension = tests::fields_of(size->second);
      sizes.push_back(tests::number_in<std::int64_t>(tests::field(dimension, 1), 0));
    }
    EXPECT_THAT(sizes, ElementsAre(300, 2)) << name;
  }
}

TEST(GraphDef, HasNoNodeForATensorThatPartsFill) {
  Graph graph;
  const TensorDesc part{.shape = {2, 4, 1, 3}, .layout = Layout::nhwc};
  const TensorId x = graph.input("x", part).id;
  const TensorId a = graph.add_tensor({.name = "a", .desc = part});
  const TensorId whole =
      graph.add_tensor({.name = "whole", .desc = {.shape = {2, 8, 1, 3}, .layout = Layout::nhwc}});
  const TensorId y = graph.add_tensor({.name = "y", .desc = part});
  const auto relu = std::make_shared<layers::Relu>();
  graph.add_node({.op = relu, .inputs = {x}, .outputs = {a}});
  graph.place_inside(a, whole, 0);
  graph.add_node({.op = relu, .inputs = {whole}, .outputs = {y}});
  const auto nodes = graph_def_nodes(graph);
  EXPECT_EQ(nodes.count("whole"), 0U);
  EXPECT_THAT(graph_def_inputs(nodes.at("relu#1")), testing::IsEmpty());
}

}  // namespace
}  // namespace cnn::bench
