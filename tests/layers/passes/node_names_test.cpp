#include "layers/passes/node_names.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <string>
#include <vector>

#include "layers/elementwise.h"
#include "layers/operands.h"
#include "layers/passes/rewriter.h"
#include "runtime/schedule.h"
#include "tests/support/test_ops.h"

namespace cnn::layers {
namespace {

using testing::ElementsAre;

TensorDesc named_desc() { return described({4}, DataType::f32); }

std::vector<std::string> tensor_names(const Graph& graph) {
  std::vector<std::string> names;
  for (const TensorInfo& info : graph.tensors()) {
    names.push_back(info.name);
  }
  return names;
}

// Returns a graph from which a pass removed node 0, so the names of the other nodes do not match
// their numbers.
Rewritten without_first_node() {
  Graph graph;
  const Value x = graph.input("x", named_desc());
  const Value gone = emit(Scale(1), {x});
  const std::vector<Value> in{gone, x};
  const std::vector<Value> two = emit_all(tests::SumAndDifference(), std::span<const Value>(in));
  graph.output("y", emit(Add(), {two[0], two[1]}));
  Rewriter rewriter(graph);
  rewriter.moved(gone.id, rewriter.now(x.id));
  rewriter.copy(graph.nodes()[1]);
  rewriter.copy(graph.nodes()[2]);
  return rewriter.finish();
}

TEST(NameByNodes, CallsEachOutputAsItsNodeIsCalled) {
  const Rewritten before = without_first_node();
  EXPECT_THAT(tensor_names(*before.graph),
              ElementsAre("x", "sum_and_difference#1", "sum_and_difference#1", "add#2"));
  const Rewritten named = name_by_nodes(*before.graph);
  EXPECT_THAT(tensor_names(*named.graph),
              ElementsAre("x", "sum_and_difference#0", "sum_and_difference#0:1", "add#1"));
  for (std::uint32_t n = 0; n < named.graph->nodes().size(); ++n) {
    EXPECT_EQ(named.graph->info(named.graph->nodes()[n].outputs[0]).name,
              to_string(*named.graph, Compute{NodeId{n}}));
  }
}

TEST(NameByNodes, ChangesNothingElse) {
  const Rewritten before = without_first_node();
  const Rewritten named = name_by_nodes(*before.graph);
  ASSERT_EQ(named.graph->nodes().size(), before.graph->nodes().size());
  for (std::size_t n = 0; n < named.graph->nodes().size(); ++n) {
    EXPECT_EQ(named.graph->nodes()[n].op, before.graph->nodes()[n].op);
    EXPECT_EQ(named.graph->nodes()[n].inputs.size(), before.graph->nodes()[n].inputs.size());
  }
  EXPECT_EQ(named.graph->nodes()[1].inputs, named.graph->nodes()[0].outputs);
  ASSERT_EQ(named.graph->outputs().size(), 1U);
  EXPECT_EQ(named.graph->outputs()[0].name, "y");
  EXPECT_EQ(named.graph->outputs()[0].tensor, named.graph->nodes()[1].outputs[0]);
}

TEST(NameByNodes, KeepsANameThatSomebodyGave) {
  Graph graph;
  const Value x = graph.input("x", named_desc());
  const TensorId own = graph.add_tensor({.name = "logits", .desc = named_desc()});
  graph.add_node({.op = std::make_shared<const Scale>(2), .inputs = {x.id}, .outputs = {own}});
  emit(Scale(2), {{&graph, own}});
  EXPECT_THAT(tensor_names(*name_by_nodes(graph).graph), ElementsAre("x", "logits", "scale#1"));
}

TEST(NameByNodes, IsDoneOnce) {
  const Rewritten once = name_by_nodes(*without_first_node().graph);
  EXPECT_EQ(tensor_names(*name_by_nodes(*once.graph).graph), tensor_names(*once.graph));
}

}  // namespace
}  // namespace cnn::layers
