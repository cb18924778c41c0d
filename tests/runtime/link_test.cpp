#include <ctime>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <string>

#include "runtime/error.h"
#include "runtime/liveness.h"
#include "runtime/program.h"
#include "runtime/waits.h"
#include "tests/support/swapping_step.h"
#include "tests/support/test_graphs.h"
#include "tests/support/test_ops.h"
#include "tests/support/test_step.h"

namespace cnn {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using tests::Combine;
using tests::Descend;
using tests::floats;
using tests::Scale;

std::vector<std::vector<StepId>> waits_of(const Graph& graph, Schedule schedule) {
  const std::vector<std::size_t> none(graph.nodes().size());
  const MemoryPlan memory = plan_memory(graph, schedule, none);
  link(graph, schedule, memory);
  std::vector<std::vector<StepId>> waits;
  for (const Step& step : schedule.steps) {
    waits.push_back(step.after);
  }
  return waits;
}

TEST(Link, WaitsForDataOfOtherLanes) {
  Graph graph;
  const Value x = graph.input("x", floats(4));
  graph.output("y", emit(Scale(2), {x}));
  // The steps are fetch x, scale and offload.
  EXPECT_THAT(waits_of(graph, make_schedule(graph)),
              ElementsAre(IsEmpty(), ElementsAre(StepId{0}), ElementsAre(StepId{1})));
}

TEST(Link, AddsNoWaitWithinALane) {
  Graph graph;
  const Value x = graph.state("x", floats(4), {}, false);
  emit(Scale(3), {emit(Scale(2), {x})});
  EXPECT_THAT(waits_of(graph, make_schedule(graph)), ElementsAre(IsEmpty(), IsEmpty()));
}

TEST(Link, WaitsForBytesThatAreReused) {
  Graph graph;
  const Value x = graph.state("x", floats(16), {}, false);
  const Value a = emit(Scale(1), {x});
  emit(Scale(2), {x});
  emit(Scale(3), {a});
  const Schedule schedule{{{.action = Compute{NodeId{0}}},
                           {.action = Offload{a.id}, .lane = Lane::copy_out},
                           {.action = Compute{NodeId{1}}},
                           {.action = Fetch{a.id}, .lane = Lane::copy_in},
                           {.action = Compute{NodeId{2}}}}};
  // The second node's result reuses the bytes of a.
  EXPECT_THAT(waits_of(graph, schedule)[2], ElementsAre(StepId{1}));
}

TEST(Link, LetsNothingWaitForTheCopyOfAResult) {
  Graph graph;
  const Value x = graph.state("x", floats(16), {}, false);
  graph.output("a", emit(Scale(1), {x}));
  emit(Scale(2), {x});
  // The steps are scale#0, offload a and scale#1. The bytes of a stay reserved, so scale#1 does not
  // wait.
  EXPECT_THAT(waits_of(graph, make_schedule(graph)),
              ElementsAre(IsEmpty(), ElementsAre(StepId{0}), IsEmpty()));
}

TEST(Link, LetsAnUpdateWaitForReadersOnOtherLanes) {
  Graph graph;
  const Value w = graph.parameter("w", floats(16), {});
  const Value g = graph.state("g", floats(16), {}, false);
  emit(Scale(1, {.lane = Lane::side}), {w});
  emit(Descend(), {w, g});
  emit(Scale(2, {.lane = Lane::side}), {w});
  EXPECT_THAT(waits_of(graph, make_schedule(graph)),
              ElementsAre(IsEmpty(), ElementsAre(StepId{0}), ElementsAre(StepId{1})));
}

TEST(Link, LeavesOutWhatAnotherWaitImplies) {
  Graph graph;
  const Value x = graph.input("x", floats(16));
  const Value a = emit(Scale(1), {x});
  emit(Combine({.lane = Lane::side}), {a, x});
  // The steps are fetch x, scale#0 after the fetch, and combine#1 after scale#0 only.
  EXPECT_THAT(waits_of(graph, make_schedule(graph)),
              ElementsAre(IsEmpty(), ElementsAre(StepId{0}), ElementsAre(StepId{1})));
}

TEST(Link, OrdersOffloadAndFetchOfASwappedTensor) {
  Graph graph;
  const Value x = graph.state("x", floats(16), {}, false);
  const Value a = emit(Scale(1), {x});
  emit(Scale(2), {a});
  Schedule schedule;
  schedule.steps = {{.action = Compute{NodeId{0}}, .lane = Lane::compute},
                    {.action = Offload{a.id}, .lane = Lane::copy_out},
                    {.action = Fetch{a.id}, .lane = Lane::copy_in},
                    {.action = Compute{NodeId{1}}, .lane = Lane::compute}};
  EXPECT_THAT(waits_of(graph, schedule),
              ElementsAre(IsEmpty(), ElementsAre(StepId{0}), ElementsAre(StepId{1}),
                          ElementsAre(StepId{2})));
}

// The compute lane makes a and c, the side lane makes b. No lane needs data of the other.
struct Triggered {
  Graph graph;
  Value x = graph.state("x", floats(16), {}, false);
  Value a = emit(Scale(1), {x});
  Value b = emit(Scale(2, {.lane = Lane::side}), {x});
  Value c = emit(Combine(), {a, x});

  Schedule with(std::vector<StepId> waits_of_b, std::vector<StepId> waits_of_c) const {
    return {{{.action = Compute{NodeId{0}}},
             {.action = Compute{NodeId{1}}, .lane = Lane::side, .after = std::move(waits_of_b)},
             {.action = Compute{NodeId{2}}, .after = std::move(waits_of_c)}}};
  }
};

TEST(Link, KeepsTheWaitsThatACallerGave) {
  const Triggered t;
  EXPECT_THAT(waits_of(t.graph, t.with({}, {})), ElementsAre(IsEmpty(), IsEmpty(), IsEmpty()));
  EXPECT_THAT(waits_of(t.graph, t.with({StepId{0}}, {StepId{1}})),
              ElementsAre(IsEmpty(), ElementsAre(StepId{0}), ElementsAre(StepId{1})));
}

TEST(Link, MergesACallersWaitWithItsOwn) {
  Graph graph;
  const Value x = graph.input("x", floats(16));
  const Value a = emit(Scale(1), {x});
  emit(Scale(2, {.lane = Lane::communicate}), {x});
  emit(Scale(3, {.lane = Lane::side}), {a});
  Schedule schedule{{{.action = Fetch{x.id}, .lane = Lane::copy_in},
                     {.action = Compute{NodeId{0}}},
                     {.action = Compute{NodeId{1}}, .lane = Lane::communicate},
                     {.action = Compute{NodeId{2}}, .lane = Lane::side, .after = {StepId{0}}}}};
  EXPECT_THAT(waits_of(graph, schedule)[3], ElementsAre(StepId{1}))
      << "step 1 has waited for step 0 already";
  schedule.steps[3].after = {StepId{2}};
  EXPECT_THAT(waits_of(graph, schedule)[3], ElementsAre(StepId{1}, StepId{2}));
}

TEST(Link, LeavesOutWhatACallerNeedNotHaveSaid) {
  const Triggered t;
  EXPECT_THAT(waits_of(t.graph, t.with({}, {StepId{0}}))[2], IsEmpty())
      << "step 0 is on the same lane";
}

TEST(Link, ChangesNothingWhenItIsCalledAgain) {
  for (unsigned seed = 0; seed < 10; ++seed) {
    const auto graph = tests::random_graph(seed);
    Schedule schedule = make_schedule(*graph);
    const MemoryPlan memory =
        plan_memory(*graph, schedule, std::vector<std::size_t>(graph->nodes().size(), 100));
    link(*graph, schedule, memory);
    const Schedule once = schedule;
    link(*graph, schedule, memory);
    for (std::size_t s = 0; s < once.steps.size(); ++s) {
      EXPECT_EQ(schedule.steps[s].after, once.steps[s].after) << "seed " << seed << " step " << s;
    }
  }
}

TEST(Link, RefusesAWaitForALaterStep) {
  const Triggered t;
  EXPECT_THROW(waits_of(t.graph, t.with({StepId{2}}, {})), Error);
}

TEST(Link, RefusesAPlanWithoutABlock) {
  Graph graph;
  graph.output("y", emit(Scale(2), {graph.input("x", floats(4))}));
  Schedule schedule = make_schedule(graph);
  EXPECT_THROW(link(graph, schedule, MemoryPlan{}), Error);
}

TEST(Link, IsFastOnALongSchedule) {
  Graph graph;
  Value x = graph.state("x", floats(16), {}, false);
  std::vector<Value> forward;
  for (int i = 0; i < 5000; ++i) {
    x = emit(Scale(1, {.lane = i % 3 == 0 ? Lane::side : Lane::compute}), {x});
    forward.push_back(x);
  }
  for (int i = 5000; i-- > 0;) {
    x = emit(Combine(), {x, forward[static_cast<std::size_t>(i)]});
  }
  Schedule schedule = make_schedule(graph);
  MemoryPlan memory;  // every tensor has its own place: the test does not measure placement
  std::size_t step = 0;
  for (const LiveInterval& interval : live_intervals(graph, schedule)) {
    memory.blocks.push_back({.owner = interval.tensor,
                             .first = interval.first,
                             .last = interval.last,
                             .offset = 64 * step++,
                             .bytes = 64});
  }
  // Processor time is independent of other jobs on the machine.
  const std::clock_t start = std::clock();
  link(graph, schedule, memory);
  // A quadratic algorithm would visit about 10^8 blocks here.
  EXPECT_LT(std::clock() - start, CLOCKS_PER_SEC);
}

TEST(HappensBefore, FollowsLanesAndWaits) {
  HappensBefore happens_before;
  happens_before.add({.action = Compute{}, .lane = Lane::compute});
  happens_before.add({.action = Compute{}, .lane = Lane::side, .after = {StepId{0}}});
  const VectorClock known =
      happens_before.add({.action = Compute{}, .lane = Lane::copy_out, .after = {StepId{1}}});
  EXPECT_THAT(known, ElementsAre(0, 1, -1, -1, -1, -1)) << "step 0 is known through step 1's wait";
  EXPECT_THAT(happens_before.before(Lane::copy_out), ElementsAre(0, 1, 2, -1, -1, -1));
  EXPECT_THAT(happens_before.before(Lane::copy_in), ElementsAre(-1, -1, -1, -1, -1, -1));
}

TEST(Link, OrdersATripToTheDisk) {
  const StepPlan plan = tests::storing_plan();
  const std::vector<Step>& steps = plan.schedule.steps;
  EXPECT_THAT(steps[4].after, ElementsAre(StepId{3})) << "the store reads what left";
  EXPECT_THAT(steps[6].after, testing::IsEmpty()) << "the load follows the store on its lane";
  EXPECT_THAT(steps[7].after, testing::Contains(StepId{6})) << "the fetch reads what was loaded";
}

}  // namespace
}  // namespace cnn
