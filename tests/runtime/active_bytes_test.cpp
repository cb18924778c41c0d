#include "runtime/active_bytes.h"

#include <gtest/gtest.h>

#include "runtime/memory_plan.h"
#include "runtime/schedule.h"
#include "tests/support/test_graphs.h"
#include "tests/support/test_ops.h"

namespace cnn {
namespace {

using tests::Combine;
using tests::floats;
using tests::Opaque;
using tests::Relu;
using tests::Scale;
using tests::SumAndDifference;

constexpr tests::TestOpOptions in_place{.in_place = true};

std::size_t active(const Graph& graph, std::size_t node, std::size_t workspace = 0) {
  return active_bytes(graph, graph.nodes()[node], workspace);
}

TEST(ActiveBytes, CountsOperandsAndWorkspaceAligned) {
  Graph graph;
  const Value x = graph.input("x", floats(17));
  emit(Opaque({floats(1), floats(16)}), {x});
  EXPECT_EQ(active(graph, 0, 65), 128U + 64U + 64U + 128U);
}

TEST(ActiveBytes, CountsNoVariable) {
  Graph graph;
  const Value w = graph.parameter("w", floats(16), {});
  const Value x = graph.input("x", floats(16));
  emit(Combine(), {w, x});
  emit(Relu(in_place), {w});
  EXPECT_EQ(active(graph, 0), 128U);
  EXPECT_EQ(active(graph, 1), 64U) << "a variable's bytes cannot be reused";
}

TEST(ActiveBytes, CountsATensorThatIsGivenTwiceOnce) {
  Graph graph;
  const Value x = graph.input("x", floats(16));
  emit(Combine(in_place), {x, x});
  EXPECT_EQ(active(graph, 0), 128U);
}

TEST(ActiveBytes, CountsOutputsInThePlaceOfInputsWithThem) {
  Graph graph;
  const std::vector<Value> in{graph.input("x", floats(16)), graph.input("y", floats(16))};
  emit_all(SumAndDifference(), std::span<const Value>(in));
  emit_all(SumAndDifference(in_place), std::span<const Value>(in));
  emit(Opaque({floats(16), floats(16)}, in_place), {in[0]});
  EXPECT_EQ(active(graph, 0), 4U * 64U);
  EXPECT_EQ(active(graph, 1), 2U * 64U);
  EXPECT_EQ(active(graph, 2), 2U * 64U) << "one output reuses one input";
}

TEST(ActiveBytes, CountsPartsAsTheWhole) {
  Graph graph;
  TensorDesc part{.shape = {2, 4, 1, 8}, .layout = Layout::nhwc};
  TensorDesc whole = part;
  whole.shape = {2, 8, 1, 8};
  const Value x = graph.input("x", part);
  const Value a = emit(Opaque({part}, in_place), {x});
  const Value b = emit(Opaque({part}), {x});
  const Value join = emit(Opaque({whole}), {a, b});
  graph.place_inside(a.id, join.id, 0);
  graph.place_inside(b.id, join.id, 4);
  EXPECT_EQ(active(graph, 0), 256U + 512U);
  EXPECT_EQ(active(graph, 2), 512U);
}

TEST(ActiveBytes, ListsTheLargestNodesFirst) {
  Graph graph;
  const Value x = graph.input("x", floats(16));
  const Value a = emit(Scale(1), {x});
  const Value b = emit(Opaque({floats(64)}), {a});
  emit(Relu(in_place), {b});
  const std::vector<std::size_t> workspace{0, 64, 0};
  const std::vector<ActiveSet> largest = largest_nodes(graph, workspace, 2);
  ASSERT_EQ(largest.size(), 2U);
  EXPECT_EQ(largest[0].node, NodeId{1});
  EXPECT_EQ(largest[0].bytes, 64U + 256U + 64U);
  EXPECT_EQ(largest[1].node, NodeId{2});
  EXPECT_EQ(min_feasible_bytes(graph, workspace), largest[0].bytes);
}

TEST(ActiveBytes, IsNeverAboveWhatAScheduleNeeds) {
  for (unsigned seed = 0; seed < 20; ++seed) {
    const auto graph = tests::random_graph(seed);
    const std::vector<std::size_t> workspace(graph->nodes().size(), 100);
    EXPECT_LE(min_feasible_bytes(*graph, workspace),
              peak_memory(*graph, make_schedule(*graph), workspace).device_bytes);
  }
}

}  // namespace
}  // namespace cnn
