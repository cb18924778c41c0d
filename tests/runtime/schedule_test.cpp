#include "runtime/schedule.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <string>
#include <vector>

#include "tests/support/test_ops.h"

namespace cnn {
namespace {

using ::testing::ElementsAre;
using tests::Combine;
using tests::Descend;
using tests::floats;
using tests::Opaque;
using tests::Relu;
using tests::Scale;

std::vector<std::string> steps_of(const Graph& graph) {
  std::vector<std::string> result;
  for (const Step& step : make_schedule(graph).steps) {
    result.push_back(to_string(graph, step.action));
  }
  return result;
}

TEST(Schedule, FetchesInputsBeforeTheirFirstUseAndOffloadsOutputsAfterTheirLast) {
  Graph graph;
  const Value a = graph.input("a", floats(4));
  const Value b = graph.input("b", floats(4));
  graph.input("unused", floats(4));
  const Value y = emit(Scale(2), {a});
  graph.output("y", y);
  emit(Combine(), {y, b});
  EXPECT_THAT(steps_of(graph),
              ElementsAre("fetch a", "scale#0", "fetch b", "combine#1", "offload scale#0"));
}

TEST(Schedule, PutsEachActionOnItsLane) {
  Graph graph;
  const Value x = graph.input("x", floats(4));
  graph.output("y", emit(Scale(2, {.lane = Lane::side}), {x}));
  const Schedule schedule = make_schedule(graph);
  ASSERT_EQ(schedule.steps.size(), 3U);
  EXPECT_EQ(schedule.steps[0].lane, Lane::copy_in);
  EXPECT_EQ(schedule.steps[1].lane, Lane::side);
  EXPECT_EQ(schedule.steps[2].lane, Lane::copy_out);
}

TEST(Schedule, TakesNodesInAnotherOrder) {
  Graph graph;
  const Value x = graph.input("x", floats(4));
  const Value weights = graph.parameter("w", floats(4), {});
  const Value a = emit(Scale(2), {x});
  const Value b = emit(Scale(3), {x});
  emit(Descend(), {weights, a});
  emit(Combine(), {a, b});
  std::vector<std::string> texts;
  const NodeId order[] = {NodeId{1}, NodeId{0}, NodeId{3}, NodeId{2}};
  for (const Step& step : make_schedule(graph, order).steps) {
    texts.push_back(to_string(graph, step.action));
  }
  // The update comes as soon as its gradient is there.
  EXPECT_THAT(texts, ElementsAre("fetch x", "scale#1", "scale#0", "descend#2", "combine#3"));
}

TEST(Schedule, OffloadsAnOutputWithTwoNamesOnce) {
  Graph graph;
  const Value y = emit(Scale(2), {graph.input("x", floats(4))});
  graph.output("one", y);
  graph.output("two", y);
  EXPECT_THAT(steps_of(graph), ElementsAre("fetch x", "scale#0", "offload scale#0"));
}

TEST(Schedule, OffloadsAnInputOrVariableThatIsAnOutput) {
  Graph graph;
  graph.output("x", graph.input("x", floats(4)));
  graph.output("w", graph.parameter("w", floats(4), {}));
  EXPECT_THAT(steps_of(graph), ElementsAre("fetch x", "offload x", "offload w"));
}

TEST(Schedule, UpdatesAVariableAsSoonAsItsGradientIsThereAndItsReadersHaveRun) {
  Graph graph;
  const Value w = graph.parameter("w", floats(4), {});
  const Value v = graph.parameter("v", floats(4), {});
  const Value x = emit(Combine(), {w, v});           // node 0
  const Value gradient_v = emit(Scale(2), {x});      // node 1
  const Value gradient_w = emit(Combine(), {x, v});  // node 2 reads v again
  emit(Relu(), {x});                                 // node 3
  emit(Descend(), {w, gradient_w});                  // node 4
  emit(Descend(), {v, gradient_v});                  // node 5
  EXPECT_THAT(steps_of(graph),
              ElementsAre("combine#0", "scale#1", "combine#2", "descend#4", "descend#5", "relu#3"));
}

TEST(Schedule, KeepsTheOrderOfReadsAndChangesOfAVariable) {
  Graph graph;
  const Value w = graph.parameter("w", floats(4), {});
  const Value g = graph.state("g", floats(4), {}, false);
  emit(Relu(), {w});                        // node 0 reads the old value
  emit(Descend(), {w, g});                  // node 1
  const Value after = emit(Scale(3), {w});  // node 2 reads the new value
  emit(Descend(), {w, g});                  // node 3 must not run before node 2
  emit(Combine(), {after, w});              // node 4
  EXPECT_THAT(steps_of(graph),
              ElementsAre("relu#0", "descend#1", "scale#2", "descend#3", "combine#4"));
}

TEST(Schedule, DoesNotMoveANodeThatMakesALargeTensorBesidesItsUpdate) {
  class Counting final : public tests::TestOp {
   public:
    Counting() : TestOp({}) {}
    std::string_view name() const override { return "counting"; }
    bool mutates(std::size_t input) const override { return input == 0; }
    void reference(std::span<const TensorView> /*in*/,
                   std::span<const TensorView> /*out*/) const override {}
  };
  Graph graph;
  const Value w = graph.parameter("w", floats(5000), {});
  emit(Relu(), {graph.state("s", floats(4), {}, false)});
  emit(Counting(), {w});
  EXPECT_THAT(steps_of(graph), ElementsAre("relu#0", "counting#1"));
}

// Slow links delay only updates.
TEST(Schedule, UpdatesBehindTheStartOfTheLastExchange) {
  Graph graph;
  const Opaque exchange({floats(4)}, {.lane = Lane::communicate});
  std::vector<Value> weights, gradients, sums;
  Value gradient = graph.input("x", floats(4));
  for (const char* const name : {"w2", "w1", "w0"}) {
    weights.push_back(graph.parameter(name, floats(4), {.initializer = {}}));
    gradient = emit(Combine(), {gradient, weights.back()});  // nodes 0, 1, 2
    gradients.push_back(gradient);
  }
  for (const Value& made : gradients) {
    sums.push_back(emit(exchange, {made}));  // nodes 3, 4, 5
  }
  for (std::size_t i = 0; i < sums.size(); ++i) {
    emit(Descend(), {weights[i], sums[i]});  // nodes 6, 7, 8
  }
  EXPECT_THAT(steps_of(graph),
              ElementsAre("fetch x", "combine#0", "opaque#3", "combine#1", "opaque#4", "combine#2",
                          "opaque#5", "descend#6", "descend#7", "descend#8"));
}

TEST(Schedule, ExchangesAsSoonAsPossible) {
  Graph graph;
  const Value w1 = graph.parameter("w1", floats(4), {});
  const Value w2 = graph.parameter("w2", floats(4), {});
  const Value g2 = emit(Scale(2), {w2});            // node 0
  const Value between = emit(Relu(), {g2});         // node 1
  const Value g1 = emit(Combine(), {between, w1});  // node 2
  emit(Relu(), {between});                          // node 3
  const Opaque exchange({floats(4)}, {.lane = Lane::communicate});
  const Value sum2 = emit(exchange, {g2});  // node 4
  const Value sum1 = emit(exchange, {g1});  // node 5
  emit(Descend(), {w2, sum2});              // node 6
  emit(Descend(), {w1, sum1});              // node 7
  EXPECT_THAT(steps_of(graph), ElementsAre("scale#0", "opaque#4", "relu#1", "combine#2", "opaque#5",
                                           "descend#6", "relu#3", "descend#7"));
}

}  // namespace
}  // namespace cnn
