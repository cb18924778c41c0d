#include "layers/passes/prologue.h"

#include <algorithm>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <string>
#include <vector>

#include "layers/elementwise.h"
#include "layers/operands.h"
#include "runtime/error.h"
#include "tests/support/error_of.h"

namespace cnn::layers {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using tests::error_of;

TensorDesc divided_desc() { return described({4}, DataType::f32); }
Value twice(Value x) { return emit(Scale(2), {x}); }

std::vector<std::string> divided_ops(const Graph& graph) {
  std::vector<std::string> names;
  for (const Node& node : graph.nodes()) {
    names.emplace_back(node.op->name());
  }
  return names;
}

std::vector<std::string> divided_names(const Graph& graph, Role role) {
  std::vector<std::string> names;
  for (const TensorInfo& info : graph.tensors()) {
    if (info.role == role) {
      names.push_back(info.name);
    }
  }
  return names;
}

// w -> a -> b and x + b, w + a; a and b are made by nodes 0 and 1.
struct DividedGraph {
  Graph graph;
  Value w = graph.parameter("w", divided_desc(), {});
  Value unused = graph.state("unused", divided_desc(), {}, true);
  Value x = graph.input("x", divided_desc());
  Value a = twice(w);
  Value b = twice(a);
  Value sum = emit(Add(), {x, b});
  Value other = emit(Add(), {w, x});

  DividedGraph() {
    graph.output("sum", sum);
    graph.output("other", other);
  }
};

TEST(Divide, LeavesTheGraphWholeWhereNoNodeIsTaken) {
  const DividedGraph g;
  const PrologueSplit divided = split_prologue(g.graph, {false, false, false, false});
  EXPECT_EQ(divided.prologue, nullptr);
  EXPECT_THAT(divided_ops(*divided.step), ElementsAre("scale", "scale", "add", "add"));
  EXPECT_THAT(divided_names(*divided.step, Role::derived), IsEmpty());
  EXPECT_EQ(divided.step->tensors().size(), g.graph.tensors().size());
  EXPECT_THAT(divided_names(*divided.step, Role::input), ElementsAre("x"));
}

TEST(Divide, KeepsOnlyWhatTheStepReadsOfThePrologue) {
  const DividedGraph g;
  const PrologueSplit divided = split_prologue(g.graph, {true, true, false, false});
  EXPECT_THAT(divided_ops(*divided.prologue), ElementsAre("scale", "scale"));
  EXPECT_THAT(divided_ops(*divided.step), ElementsAre("add", "add"));
  EXPECT_THAT(divided_names(*divided.step, Role::derived), ElementsAre("scale#1:4"));
  EXPECT_THAT(divided_names(*divided.prologue, Role::derived), ElementsAre("scale#1:4"));
  EXPECT_THAT(divided_names(*divided.prologue, Role::activation), ElementsAre("scale#0"));
  EXPECT_THAT(divided_names(*divided.step, Role::activation), ElementsAre("add#2", "add#3"));
}

TEST(Divide, GivesThePrologueOnlyTheVariablesThatItReads) {
  const DividedGraph g;
  const PrologueSplit divided = split_prologue(g.graph, {true, false, false, false});
  EXPECT_THAT(divided_names(*divided.prologue, Role::parameter), ElementsAre("w"));
  EXPECT_THAT(divided_names(*divided.prologue, Role::state), IsEmpty());
  EXPECT_THAT(divided_names(*divided.step, Role::parameter), ElementsAre("w"));
  EXPECT_THAT(divided_names(*divided.step, Role::state), ElementsAre("unused")) << "it is saved";
}

TEST(Divide, KeepsOutputsInTheStepWhereverTheyAreMade) {
  Graph graph;
  const Value w = graph.parameter("w", divided_desc(), {});
  graph.output("doubled", twice(w));
  graph.output("w", w);
  const PrologueSplit divided = split_prologue(graph, {true});
  ASSERT_EQ(divided.step->outputs().size(), 2U);
  EXPECT_EQ(divided.step->outputs()[0].name, "doubled");
  EXPECT_EQ(divided.step->info(divided.step->outputs()[0].tensor).role, Role::derived);
  EXPECT_EQ(divided.step->info(divided.step->outputs()[1].tensor).name, "w");
  EXPECT_TRUE(divided.prologue->outputs().empty()) << "the host reads the step's";
}

// Passes give the conversions of one tensor one name.
TEST(Divide, TellsTensorsOfOneNameApart) {
  Graph graph;
  const Value w = graph.parameter("w", divided_desc(), {});
  const Value x = graph.input("x", divided_desc());
  std::vector<TensorId> made;
  for (int i = 0; i < 2; ++i) {
    made.push_back(graph.add_tensor({.name = "w converted", .desc = divided_desc()}));
    graph.add_node(
        {.op = std::make_shared<const Scale>(2), .inputs = {w.id}, .outputs = {made[i]}});
  }
  const Value sum = emit(Add(), {{&graph, made[0]}, {&graph, made[1]}});
  graph.output("y", emit(Add(), {x, sum}));
  const PrologueSplit divided = split_prologue(graph, {true, true, false, false});
  const std::vector<std::string> names = divided_names(*divided.step, Role::derived);
  ASSERT_EQ(names.size(), 2U);
  EXPECT_NE(names[0], names[1]);
  EXPECT_EQ(names, divided_names(*divided.prologue, Role::derived));
}

TEST(Divide, RefusesAPrologueThatReadsWhatAStepMakes) {
  const DividedGraph g;
  EXPECT_THAT(error_of([&] {
                split_prologue(g.graph, {false, true, false, false});
              }),
              HasSubstr("a prologue cannot read scale#0"));
  EXPECT_THAT(error_of([&] {
                split_prologue(g.graph, {false, false, false, true});
              }),
              HasSubstr("a prologue cannot read x"))
      << "an input changes with every step";
}

TEST(Divide, WantsAnEntryForEachNode) {
  const DividedGraph g;
  EXPECT_THAT(error_of([&] { split_prologue(g.graph, {true}); }),
              HasSubstr("one entry for each node"));
}

}  // namespace
}  // namespace cnn::layers
