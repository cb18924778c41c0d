#include "runtime/block_lifetimes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <string>
#include <vector>

#include "runtime/liveness.h"
#include "runtime/memory_plan.h"
#include "runtime/program.h"
#include "tests/support/error_of.h"
#include "tests/support/test_graphs.h"
#include "tests/support/test_ops.h"

namespace cnn {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using tests::Combine;
using tests::error_of;
using tests::floats;
using tests::random_graph;
using tests::Relu;
using tests::Scale;

Step compute(std::uint32_t node, Lane lane = Lane::compute, std::vector<StepId> after = {}) {
  return {.action = Compute{NodeId{node}}, .lane = lane, .after = std::move(after)};
}
Step offload(Value value) { return {.action = Offload{value.id}, .lane = Lane::copy_out}; }
Step fetch(Value value) { return {.action = Fetch{value.id}, .lane = Lane::copy_in}; }

// Returns, for each interval, its first step, the last step that touches it, and the last step that
// holds its bytes.
std::vector<std::vector<std::size_t>> intervals_of(const Graph& graph, const Schedule& schedule) {
  const BlockLifetimes holds(graph, schedule);
  std::vector<std::vector<std::size_t>> result;
  for (const LiveInterval& interval : live_intervals(graph, schedule)) {
    result.push_back(
        {index_of(interval.first), index_of(interval.last), index_of(holds.of(interval))});
  }
  return result;
}

// Four nodes a, b, c and d that each read the state x.
struct Fan {
  Graph graph;
  Value x = graph.state("x", floats(16), {}, false);
  Value a = emit(Scale(1), {x});
  Value b = emit(Scale(2), {x});
  Value c = emit(Scale(3), {x});
  Value d = emit(Combine(), {a, c});
};

TEST(BlockLifetimes, EndWithTheLastUseWhereOneLaneDoesAll) {
  const Fan f;
  EXPECT_THAT(intervals_of(f.graph, {{compute(0), compute(1), compute(2), compute(3)}}),
              ElementsAre(ElementsAre(0, 3, 3), ElementsAre(1, 1, 1), ElementsAre(2, 3, 3),
                          ElementsAre(3, 3, 3)));
}

TEST(BlockLifetimes, LastToTheFirstComputeStepThatWaitsForTheOtherLane) {
  const Fan f;
  // The side lane computes c; d, three steps later, is the first step that waits for it.
  const Schedule schedule{{compute(0), compute(2, Lane::side), compute(1), compute(1), compute(3)}};
  const auto intervals = intervals_of(f.graph, schedule);
  EXPECT_THAT(intervals[1], ElementsAre(1, 4, 4));
  EXPECT_EQ(BlockLifetimes(f.graph, schedule).of_workspace(StepId{1}), StepId{3})
      << "d, which waits for it anyway, is the first that may reuse its workspace";
  EXPECT_EQ(BlockLifetimes(f.graph, schedule).of_workspace(StepId{2}), StepId{2})
      << "the workspace of a compute step";
}

TEST(BlockLifetimes, LastToTheEndWhereNobodyWaits) {
  Fan f;
  f.graph.output("b", f.b);
  const Schedule schedule{{compute(1), offload(f.b), compute(0), compute(2), compute(3)}};
  EXPECT_THAT(intervals_of(f.graph, schedule)[0], ElementsAre(0, 1, 4))
      << "no step waits for the copy of an output";
}

TEST(BlockLifetimes, EndWhereTheCallerLetsAStepWait) {
  Fan f;
  f.graph.output("b", f.b);
  const Schedule schedule{
      {compute(1), offload(f.b), compute(0), compute(2, Lane::compute, {StepId{1}}), compute(3)}};
  EXPECT_THAT(intervals_of(f.graph, schedule)[0], ElementsAre(0, 1, 2));
}

TEST(BlockLifetimes, EndWithTheOffloadOfATensorThatComesBack) {
  const Fan f;
  const Schedule schedule{
      {compute(0), offload(f.a), compute(1), compute(2), fetch(f.a), compute(3)}};
  const auto intervals = intervals_of(f.graph, schedule);
  EXPECT_THAT(intervals[0], ElementsAre(0, 1, 1)) << "a swap frees the bytes at once";
  EXPECT_THAT(intervals[3], ElementsAre(4, 5, 5));
}

TEST(BlockLifetimes, LetTheCallerSayWhenASwapFreesItsBytes) {
  const Fan f;
  const Schedule schedule{{compute(0), offload(f.a), compute(1),
                           compute(2, Lane::compute, {StepId{1}}), fetch(f.a), compute(3)}};
  EXPECT_THAT(intervals_of(f.graph, schedule)[0], ElementsAre(0, 1, 2));
}

TEST(BlockLifetimes, RefuseAWaitForALaterStep) {
  const Fan f;
  const Schedule schedule{{compute(0, Lane::compute, {StepId{2}}), compute(1), compute(2)}};
  EXPECT_THAT(error_of([&] { BlockLifetimes(f.graph, schedule); }),
              HasSubstr("step 0 waits for step 2, which does not come before it"));
}

TEST(BlockLifetimes, KeepAResultOutOfBytesThatAnotherLaneStillReads) {
  Graph graph;
  const Value x = graph.state("x", floats(16), {}, false);
  const Value a = emit(Scale(1), {x});
  const Value b = emit(Scale(2, {.lane = Lane::side}), {a});
  const Value c = emit(Relu({.in_place = true}), {a});
  emit(Combine(), {b, c});
  const Schedule schedule{{compute(0), compute(1, Lane::side), compute(2), compute(3)}};
  const MemoryPlan plan = plan_memory(graph, schedule, std::vector<std::size_t>(4));
  const BlockIndex index(graph, plan);
  EXPECT_NE(index.tensor(a.id, StepId{2})->offset, index.tensor(c.id, StepId{2})->offset);

  const Schedule waiting{
      {compute(0), compute(1, Lane::side), compute(2, Lane::compute, {StepId{1}}), compute(3)}};
  const MemoryPlan shared = plan_memory(graph, waiting, std::vector<std::size_t>(4));
  const BlockIndex other(graph, shared);
  EXPECT_EQ(other.tensor(a.id, StepId{2})->offset, other.tensor(c.id, StepId{2})->offset);
}

TEST(BlockLifetimes, DistinguishTwoStaysOfATensorWhoseBytesAreKeptAtOnce) {
  Graph graph;
  const Value x = graph.state("x", floats(16), {}, false);
  const Value a = emit(Scale(1), {x});
  const Value b = emit(Scale(2, {.lane = Lane::side}), {a});
  emit(Combine(), {a, b});
  // The side lane reads a, and a step computes a again before any step waits for that read.
  const Schedule schedule{{compute(0), compute(1, Lane::side), compute(0), compute(2)}};
  const MemoryPlan plan = plan_memory(graph, schedule, std::vector<std::size_t>(3));
  const BlockIndex index(graph, plan);
  EXPECT_EQ(index.tensor(a.id, StepId{1})->first, StepId{0});
  EXPECT_EQ(index.tensor(a.id, StepId{2})->first, StepId{2});
  EXPECT_NE(index.tensor(a.id, StepId{1})->offset, index.tensor(a.id, StepId{3})->offset);
}

// A compute step may reuse an exchange's workspace only if it waits for the exchange anyway.
TEST(BlockLifetimes, KeepAnExchangeFromStallingComputeThroughItsWorkspace) {
  Graph graph;
  const Value x = graph.state("x", floats(16), {}, false);
  const Value g = emit(Scale(1), {x});
  const Value sum = emit(Scale(2, {.lane = Lane::communicate}), {g});
  const Value h = emit(Scale(3), {x});
  emit(Combine(), {h, sum});
  Schedule schedule{{compute(0), compute(1, Lane::communicate), compute(2), compute(3)}};
  const MemoryPlan plan =
      plan_memory(graph, schedule, std::vector<std::size_t>{0, 1024, 1024, 1024});
  EXPECT_EQ(plan.device_bytes, 64U + 64 + 64 + 2048) << "two workspaces at once, and g, sum and h";
  link(graph, schedule, plan);
  EXPECT_THAT(schedule.steps[2].after, IsEmpty());
  EXPECT_THAT(schedule.steps[3].after, ElementsAre(StepId{1}));
}

// Gives every block a place of its own, so that steps wait only for data.
Schedule linked_apart(const Graph& graph, Schedule schedule, MemoryPlan plan) {
  std::size_t offset = 0;
  for (Block& block : plan.blocks) {
    block.offset = offset;
    offset += aligned(block.bytes);
  }
  link(graph, schedule, plan);
  return schedule;
}

TEST(BlockLifetimes, LetComputeWaitForDataOnlyInRandomGraphs) {
  int others = 0;
  for (unsigned seed = 0; seed < 30; ++seed) {
    const auto graph = random_graph(seed);
    const std::vector<std::size_t> workspace(graph->nodes().size(), 200);
    Schedule schedule = make_schedule(*graph);
    const MemoryPlan plan = plan_memory(*graph, schedule, workspace);
    const Schedule apart = linked_apart(*graph, schedule, plan);
    link(*graph, schedule, plan);
    HappensBefore happens_before;  // order by data alone
    for (std::size_t s = 0; s < schedule.steps.size(); ++s) {
      const bool by_data =
          happened_before(given_waits(schedule, s), happens_before.add(apart.steps[s]));
      if (schedule.steps[s].lane == Lane::compute) {
        EXPECT_TRUE(by_data) << "seed " << seed << " step " << s;
      } else {
        others += by_data ? 0 : 1;
      }
    }
  }
  EXPECT_GT(others, 10) << "bytes are reused";
}

}  // namespace
}  // namespace cnn
