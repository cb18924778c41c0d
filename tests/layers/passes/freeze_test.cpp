#include "layers/passes/freeze.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <memory>
#include <string>

#include "layers/elementwise.h"
#include "layers/operands.h"
#include "layers/optimizer.h"
#include "tests/layers/running_graph.h"
#include "tests/support/literals.h"
#include "tests/support/test_step.h"

namespace cnn::layers {
namespace {

using testing::ElementsAre;

TensorDesc four() { return described({4}, DataType::f32); }

Value parameter(Graph& graph, const char* name) { return graph.parameter(name, four(), {}); }

std::vector<std::string> ops_of(const Graph& graph) {
  std::vector<std::string> names;
  for (const Node& node : graph.nodes()) {
    names.emplace_back(node.op->name());
  }
  return names;
}

std::vector<std::string> names_of(const Graph& graph, Role role) {
  std::vector<std::string> names;
  for (const TensorInfo& info : graph.tensors()) {
    if (info.role == role) {
      names.push_back(info.name);
    }
  }
  return names;
}

Value add(Value a, Value b) { return emit(Add(), {a, b}); }
Value doubled(Value x) { return emit(Scale(2), {x}); }

TEST(FreezeConstants, LeavesToTheStepWhatDependsOnItsInput) {
  Graph graph;
  const Value w = parameter(graph, "w");
  const Value x = graph.input("x", four());
  graph.output("y", add(x, add(doubled(w), w)));
  const PrologueSplit divided = freeze_constants(graph);
  EXPECT_THAT(ops_of(*divided.step), ElementsAre("add"));
  EXPECT_THAT(ops_of(*divided.prologue), ElementsAre("scale", "add"));
  EXPECT_THAT(names_of(*divided.step, Role::derived), ElementsAre("add#1:3"));
  EXPECT_THAT(names_of(*divided.prologue, Role::derived), ElementsAre("add#1:3"));
  EXPECT_THAT(names_of(*divided.step, Role::parameter), ElementsAre("w")) << "it is saved";
  EXPECT_THAT(names_of(*divided.step, Role::activation), ElementsAre("add#2"));
}

TEST(FreezeConstants, TakesNothingOfWhatIsTimed) {
  Graph graph;
  const Value images = graph.state("images", four(), {}, /*saved=*/false);
  graph.output("y", doubled(images));
  const PrologueSplit divided = freeze_constants(graph);
  EXPECT_EQ(divided.prologue, nullptr);
  EXPECT_THAT(ops_of(*divided.step), ElementsAre("scale"));
}

TEST(FreezeConstants, TakesNothingOfAVariableThatTheStepChanges) {
  Graph graph;
  const Value scale = graph.state("scale", described({}, DataType::f32), {}, /*saved=*/true);
  const Value count = graph.state("count", described({}, DataType::f32), {}, /*saved=*/true);
  const Value found = graph.input("found", described({}, DataType::i32));
  graph.output("y", doubled(scale));
  emit_all(AdvanceLossScale(2), std::vector{scale, count, found});
  EXPECT_EQ(freeze_constants(graph).prologue, nullptr);
}

TEST(FreezeConstants, GivesTheBitsOfTheWholeGraph) {
  const KernelTable table = tests::test_kernels();
  auto graph = std::make_shared<Graph>();
  const Value w = parameter(*graph, "w");
  const Value x = graph->state("x", four(), {}, /*saved=*/false);
  graph->output("y", add(x, add(doubled(w), w)));
  tests::RunningGraph whole({.step = graph, .prologue = nullptr}, table);
  tests::RunningGraph divided(freeze_constants(*graph), table);
  const tests::HostTensor more = tests::tensor({4}, {0.25F, 4, -1, 7});
  for (tests::RunningGraph* running : {&whole, &divided}) {
    running->write("w", more.view());
    running->prepare();
    running->run();
  }
  const tests::HostTensor values = whole.variable("x");
  for (std::size_t i = 0; i < 4; ++i) {
    const float expected = values.view().as<float>()[i] + 3 * more.view().as<float>()[i];
    EXPECT_EQ(whole.results()[0].as<float>()[i], expected);
    EXPECT_EQ(divided.results()[0].as<float>()[i], expected);
  }
}

}  // namespace
}  // namespace cnn::layers
