#include "runtime/verify_values.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <string>
#include <vector>

#include "runtime/program.h"
#include "tests/runtime/small_plan.h"
#include "tests/support/error_of.h"
#include "tests/support/test_ops.h"
#include "tests/support/test_step.h"

namespace cnn {
namespace {

using ::testing::HasSubstr;
using tests::Combine;
using tests::Descend;
using tests::error_of;
using tests::floats;
using tests::Scale;
using tests::small_plan;
using tests::test_kernels;

// Returns the error of a plan that computes wrong values, or "" if the plan is correct.
std::string values_error(const StepPlan& plan) {
  return error_of([&] { verify_values(plan); });
}

TEST(VerifyValues, AcceptsAPlanWhateverItsBlocks) {
  StepPlan plan = small_plan(100);
  EXPECT_EQ(values_error(plan), "");
  plan.memory.blocks.clear();
  EXPECT_EQ(values_error(plan), "");
}

TEST(VerifyValues, FindsASpecThatDisagreesWithTheGraph) {
  StepPlan plan = small_plan();
  plan.specs[0].out[0].type = DataType::bf16;
  EXPECT_THAT(values_error(plan), HasSubstr("the graph has other operands"));
}

TEST(VerifyValues, FindsANodeThatDoesNotRunAndAnUpdateThatRunsTwice) {
  StepPlan plan = small_plan();
  ASSERT_EQ(to_string(*plan.graph, plan.schedule.steps[3].action), "descend#3");
  StepPlan twice = plan;
  twice.schedule.steps.push_back(twice.schedule.steps[3]);
  EXPECT_THAT(values_error(twice), HasSubstr("descend#3 runs 2 times"));
  plan.schedule.steps.erase(plan.schedule.steps.begin() + 3);
  EXPECT_THAT(values_error(plan), HasSubstr("descend#3 runs 0 times"));
}

TEST(VerifyValues, FindsARecomputationThatReadsAnUpdatedVariable) {
  StepPlan plan = small_plan();
  Schedule schedule = plan.schedule;
  schedule.steps.insert(schedule.steps.begin() + 4, {.action = Compute{NodeId{1}}});
  EXPECT_THAT(error_of([&] { make_plan(plan.graph, plan.specs, schedule); }),
              HasSubstr("meets w after 1 changes in place instead of 0"));
}

TEST(VerifyValues, FindsAnOutputThatDoesNotLeave) {
  StepPlan plan = small_plan();
  plan.schedule.steps.pop_back();
  EXPECT_THAT(values_error(plan), HasSubstr("output c does not leave"));
}

TEST(VerifyValues, FindsANodeThatRunsOnTwoLanes) {
  const StepPlan plan = small_plan();
  Schedule schedule = make_schedule(*plan.graph);
  ASSERT_EQ(to_string(*plan.graph, schedule.steps[1].action), "scale#0");
  schedule.steps.insert(schedule.steps.begin() + 2,
                        {.action = Compute{NodeId{0}}, .lane = Lane::side});
  EXPECT_THAT(error_of([&] { make_plan(plan.graph, plan.specs, schedule); }),
              HasSubstr("scale#0 runs on the lanes compute and side"));
  schedule.steps[2].lane = Lane::compute;
  EXPECT_EQ(error_of([&] { make_plan(plan.graph, plan.specs, schedule); }), "");
}

TEST(VerifyValues, FindsANodeWithoutASpec) {
  StepPlan plan = small_plan();
  plan.specs.pop_back();
  EXPECT_THAT(values_error(plan), HasSubstr("a node has no kernel spec"));
}

TEST(VerifyValues, FindsASpecWithTooFewOperands) {
  StepPlan fewer = small_plan();
  fewer.specs[1].in.pop_back();
  EXPECT_THAT(values_error(fewer), HasSubstr("the graph has other operands"));
  StepPlan more = small_plan();
  more.specs[1].out.push_back(floats(16));
  EXPECT_THAT(values_error(more), HasSubstr("the graph has other operands"));
}

TEST(VerifyValues, FindsAVariableThatIsReadAfterItsUpdateInsteadOfBefore) {
  StepPlan plan = small_plan();
  auto& steps = plan.schedule.steps;
  ASSERT_EQ(to_string(*plan.graph, steps[2].action), "combine#1");
  ASSERT_EQ(to_string(*plan.graph, steps[3].action), "descend#3");
  std::swap(steps[2].action, steps[3].action);
  EXPECT_THAT(values_error(plan), HasSubstr("combine#1) meets w after 1 changes in place"));
}

// A weight that is copied to the host as an output must have been updated before.
TEST(VerifyValues, FindsAnOutputThatLeavesBeforeItsUpdate) {
  auto graph = std::make_shared<Graph>();
  const Value w = graph->parameter("w", floats(16), {});
  emit(Descend(), {w, emit(Scale(2), {w})});
  graph->output("w", w);
  StepPlan plan = make_plan(graph, test_kernels());
  EXPECT_EQ(values_error(plan), "");
  auto& steps = plan.schedule.steps;
  ASSERT_EQ(steps.size(), 3U);
  std::swap(steps[1], steps[2]);
  EXPECT_THAT(values_error(plan), HasSubstr("output w does not leave with its last value"));
}

// A copy made before an update in place does not have that update when it comes back.
TEST(VerifyValues, FindsACopyThatComesBackTooOld) {
  auto graph = std::make_shared<Graph>();
  const Value x = graph->state("x", floats(16), {}, false);
  const Value a = emit(Scale(1), {x});
  emit(Descend(), {a, x});
  emit(Combine(), {a, x});
  StepPlan plan = make_plan(graph, test_kernels());
  plan.schedule.steps = {{.action = Compute{NodeId{0}}},
                         {.action = Compute{NodeId{1}}},
                         {.action = Offload{a.id}, .lane = Lane::copy_out},
                         {.action = Fetch{a.id}, .lane = Lane::copy_in},
                         {.action = Compute{NodeId{2}}}};
  EXPECT_EQ(values_error(plan), "");
  std::swap(plan.schedule.steps[1], plan.schedule.steps[2]);
  EXPECT_THAT(values_error(plan),
              HasSubstr("combine#2) meets scale#0 after 0 changes in place instead of 1"));
}

TEST(VerifyValues, FollowsVersionsToTheDiskAndBack) {
  auto graph = std::make_shared<Graph>();
  const Value x = graph->state("x", floats(16), {}, false);
  const Value a = emit(Scale(1), {x});
  emit(Descend(), {a, x});
  emit(Combine(), {a, x});
  StepPlan plan = make_plan(graph, test_kernels());
  plan.schedule.steps = {{.action = Compute{NodeId{0}}},
                         {.action = Compute{NodeId{1}}},
                         {.action = Offload{a.id}, .lane = Lane::copy_out},
                         {.action = Store{a.id}, .lane = Lane::disk},
                         {.action = Load{a.id}, .lane = Lane::disk},
                         {.action = Fetch{a.id}, .lane = Lane::copy_in},
                         {.action = Compute{NodeId{2}}}};
  EXPECT_EQ(values_error(plan), "");
  std::swap(plan.schedule.steps[1], plan.schedule.steps[3]);  // the store precedes the offload
  EXPECT_THAT(values_error(plan),
              HasSubstr("combine#2) meets scale#0 after 0 changes in place instead of 1"));
}

}  // namespace
}  // namespace cnn
