#include "lms/stalls.h"

#include <gtest/gtest.h>

#include "tests/support/swapping_step.h"
#include "tests/support/test_ops.h"

namespace cnn::lms {
namespace {

// The plan computes x -> a -> b -> c and d = c - a / 2. Its steps are: in x, a, b, out a, c, in a,
// d, out d. Step c waits for the swap-out of a, step d for its swap-in.
Stalls stalls_of(const Timeline& timeline) {
  const StepPlan plan = tests::swapping_plan();
  return stalls(*plan.graph, plan.schedule, timeline);
}

TEST(Stalls, AreNoneWhereCopiesEndInTime) {
  const Stalls found = stalls_of({{0, 0}, {0, 1}, {1, 2}, {1, 2}, {2, 5}, {2, 4}, {5, 6}, {6, 6}});
  EXPECT_EQ(found.total(), 0);
}

TEST(Stalls, AreOfSwapInsWhileTheseAreOnTheirWay) {
  const Stalls found =
      stalls_of({{0, 0}, {0, 1}, {1, 2}, {1, 2}, {2, 3}, {2, 6.5}, {6.5, 7}, {7, 7}});
  EXPECT_EQ(found.swap_in, 3.5);
  EXPECT_EQ(found.memory, 0);
  EXPECT_EQ(found.other, 0);
}

TEST(Stalls, AreOfMemoryWhereANodeTakesBytesThatAreStillLeaving) {
  const Stalls found =
      stalls_of({{0, 0}, {0, 1}, {1, 2}, {1, 5}, {5, 6}, {6, 7.5}, {7.5, 8}, {8, 8}});
  EXPECT_EQ(found.memory, 3) << "c reuses the bytes of a";
  EXPECT_EQ(found.swap_in, 1.5);
  EXPECT_EQ(found.other, 0);
}

TEST(Stalls, AreOfMemoryAsFarAsReturnsThemselvesWaitForDepartures) {
  StepPlan plan = tests::swapping_plan();
  plan.schedule.steps[4].after.clear();
  plan.schedule.steps[5].after = {StepId{3}};
  const Timeline timeline{{0, 0}, {0, 1}, {1, 2}, {1, 5}, {2, 3}, {5, 6.5}, {6.5, 7}, {7, 7}};
  const Stalls found = stalls(*plan.graph, plan.schedule, timeline);
  EXPECT_EQ(found.memory, 2) << "from the end of c to the end of the swap-out";
  EXPECT_EQ(found.swap_in, 1.5);
  EXPECT_EQ(found.other, 0);
}

// Nodes of the copy lanes move variables that lie on the host.
TEST(Stalls, AreOfSwapInsAndMemoryForNodesOfCopyLanes) {
  Graph graph;
  const Value w = graph.state("w", tests::floats(16), {}, false);
  const Value loaded = emit(tests::Scale(1, {.lane = Lane::copy_in}), {w});
  const Value stored = emit(tests::Scale(1, {.lane = Lane::copy_out}), {w});
  emit(tests::Scale(1), {loaded});
  emit(tests::Scale(1), {stored});
  Schedule schedule = make_schedule(graph);
  schedule.steps[2].after = {StepId{0}};
  schedule.steps[3].after = {StepId{1}};
  const Stalls found = stalls(graph, schedule, {{0, 2}, {0, 4}, {2, 3}, {4, 5}});
  EXPECT_EQ(found.swap_in, 2);
  EXPECT_EQ(found.memory, 1);
  EXPECT_EQ(found.other, 0);
}

TEST(Stalls, AreOthersForInputsResultsAndGaps) {
  const Stalls found =
      stalls_of({{0, 2}, {2, 3}, {3.25, 4}, {3.25, 4}, {4, 5}, {4, 5}, {5, 6}, {6, 6.5}});
  EXPECT_EQ(found.other, 2 + 0.25 + 0.5);
  EXPECT_EQ(found.swap_in + found.memory, 0);
}

TEST(Stalls, AreTheTimeOfASimulatedStepBeyondItsNodes) {
  const StepPlan plan = tests::swapping_plan();
  const Costs costs{
      .seconds = {1, 1, 1, 1}, .out_bytes_per_second = 256.0 / 2, .in_bytes_per_second = 256.0 / 4};
  const Timeline timeline = simulate(plan, costs);
  const Stalls found = stalls(*plan.graph, plan.schedule, timeline);
  EXPECT_EQ(found.total(), end_of(timeline) - 4);
  EXPECT_GT(found.swap_in, 0);
}

TEST(Stalls, CountTheDiskAsMemoryOrSwapIns) {
  const StepPlan plan = tests::storing_plan();
  const Costs costs{
      .seconds = {1, 1, 1, 1}, .store_bytes_per_second = 256.0, .load_bytes_per_second = 32};
  const Timeline timeline = simulate(plan, costs);
  const Stalls found = stalls(*plan.graph, plan.schedule, timeline);
  EXPECT_EQ(found.swap_in, 7) << "the load begins with c, which takes 1 of its 8 s";
  EXPECT_EQ(found.other, 0);
}

}  // namespace
}  // namespace cnn::lms
