#include "lms/edit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <string>
#include <vector>

#include "lms/summary.h"
#include "runtime/program.h"
#include "tests/support/error_of.h"
#include "tests/support/test_ops.h"

namespace cnn::lms {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using tests::error_of;
using tests::floats;
using tests::Scale;

// A chain of nodes x -> a -> b -> c -> d.
struct Line {
  Graph graph;
  Value x = graph.state("x", floats(16), {}, false);
  Value a = emit(Scale(1), {x});
  Value b = emit(Scale(2), {a});
  Value c = emit(Scale(3), {b});
  Value d = emit(Scale(4), {a});
  Schedule schedule = make_schedule(graph);

  std::vector<std::string> texts(const Schedule& edited) const {
    std::vector<std::string> result;
    for (const Step& step : edited.steps) {
      std::string text = to_string(graph, step.action);
      for (const StepId wait : step.after) {
        text += " <" + std::to_string(index_of(wait));
      }
      result.push_back(text);
    }
    return result;
  }
  std::vector<std::string> edited(const std::vector<Decision>& decisions,
                                  SyncMode sync = SyncMode::none) const {
    return texts(edit(schedule, decisions, sync));
  }
};

Swap swap_of(Value value, std::uint32_t out, std::uint32_t back) {
  return {.tensor = value.id, .out_behind = StepId{out}, .back_before = StepId{back}};
}

TEST(Edit, PutsCopiesBehindTheLastUseAndBeforeTheNext) {
  const Line l;
  EXPECT_THAT(l.edited({swap_of(l.a, 1, 3)}), ElementsAre("scale#0", "scale#1", "offload scale#0",
                                                          "scale#2", "fetch scale#0", "scale#3"));
}

TEST(Edit, RepeatsANodeOnItsOwnLane) {
  Graph graph;
  const Value w = graph.state("w", floats(16), {}, false);
  const Value loaded = emit(Scale(1, {.lane = Lane::copy_in}), {w});
  emit(Scale(2), {loaded});
  emit(Scale(3), {loaded});
  const std::vector<Decision> again{Recompute{.node = NodeId{0}, .before = StepId{2}},
                                    Recompute{.node = NodeId{1}, .before = StepId{2}}};
  const Schedule edited = edit(make_schedule(graph), again);
  std::vector<Lane> lanes;
  for (const Step& step : edited.steps) {
    lanes.push_back(step.lane);
  }
  EXPECT_THAT(lanes, ElementsAre(Lane::copy_in, Lane::compute, Lane::copy_in, Lane::compute,
                                 Lane::compute));
}

TEST(Edit, LetsACopyBackWaitForItsTrigger) {
  const Line l;
  Swap swap = swap_of(l.a, 0, 3);
  swap.not_before = StepId{1};
  EXPECT_THAT(l.edited({swap}), ElementsAre("scale#0", "offload scale#0", "scale#1",
                                            "fetch scale#0 <2", "scale#2", "scale#3"));
}

TEST(Edit, LetsAStepWaitForADeparture) {
  const Line l;
  Swap swap = swap_of(l.a, 1, 3);
  swap.free_before = StepId{2};
  EXPECT_THAT(l.edited({swap}), ElementsAre("scale#0", "scale#1", "offload scale#0", "scale#2 <2",
                                            "fetch scale#0", "scale#3"));
}

TEST(Edit, CopiesNothingOutThatTheHostHas) {
  const Line l;
  Swap again = swap_of(l.b, 2, 3);
  again.on_host = true;
  EXPECT_THAT(l.edited({swap_of(l.b, 1, 2), again}),
              ElementsAre("scale#0", "scale#1", "offload scale#1", "fetch scale#1", "scale#2",
                          "fetch scale#1", "scale#3"));
}

TEST(Edit, RunsNodesAgainInTheOrderOfTheDecisions) {
  const Line l;
  EXPECT_THAT(l.edited({Recompute{NodeId{0}, StepId{3}}, Recompute{NodeId{1}, StepId{3}}}),
              ElementsAre("scale#0", "scale#1", "scale#2", "scale#0", "scale#1", "scale#3"));
}

TEST(Edit, HoldsComputeUpWhereCopiesAreSynchronous) {
  const Line l;
  Swap swap = swap_of(l.a, 1, 3);
  EXPECT_THAT(l.edited({swap}, SyncMode::out),
              ElementsAre("scale#0", "scale#1", "offload scale#0", "scale#2 <2", "fetch scale#0",
                          "scale#3"));
  swap.not_before = StepId{1};
  EXPECT_THAT(l.edited({swap}, SyncMode::both),
              ElementsAre("scale#0", "scale#1", "offload scale#0", "scale#2 <2", "fetch scale#0 <3",
                          "scale#3"))
      << "no trigger starts the swap-in earlier";
}

TEST(Edit, MovesTheWaitsOfTheScheduleAlong) {
  Line l;
  l.schedule.steps[3].after = {StepId{2}};
  EXPECT_THAT(l.edited({swap_of(l.a, 0, 3)}),
              ElementsAre("scale#0", "offload scale#0", "scale#1", "scale#2", "fetch scale#0",
                          "scale#3 <3"));
}

TEST(Edit, RefusesWhatReturnsBeforeItLeaves) {
  const Line l;
  EXPECT_THAT(error_of([&] { l.edited({swap_of(l.a, 3, 3)}); }), HasSubstr("cannot return"));
  EXPECT_THAT(error_of([&] { l.edited({swap_of(l.a, 3, 9)}); }), HasSubstr("no step 9"));
}

TEST(Summary, CountsWhatAPlanDoes) {
  const Line l;
  const Schedule edited =
      edit(l.schedule, std::vector<Decision>{swap_of(l.a, 1, 3), Recompute{NodeId{1}, StepId{3}}});
  const Summary summary = summarize(l.graph, edited);
  EXPECT_EQ(summary.swapped_tensors, 1U);
  EXPECT_EQ(summary.swap_outs, 1U);
  EXPECT_EQ(summary.swap_ins, 1U);
  EXPECT_EQ(summary.bytes_out, 64U);
  EXPECT_EQ(summary.bytes_in, 64U);
  EXPECT_EQ(summary.recomputed, 1U);
  EXPECT_TRUE(summary.moves());
  EXPECT_FALSE(summarize(l.graph, l.schedule).moves());
}

}  // namespace
}  // namespace cnn::lms
