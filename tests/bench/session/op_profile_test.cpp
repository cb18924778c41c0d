#include "bench/session/op_profile.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <memory>

#include "layers/elementwise.h"

namespace cnn::bench {
namespace {

using testing::AllOf;
using testing::HasSubstr;

// Returns a plan of two consecutive nodes, each of which reads and writes 1000 bytes in total, and
// of a copy of the output.
StepPlan two_scales() {
  auto graph = std::make_shared<Graph>();
  const Value x = graph->state("x", {Shape{125}}, {}, false);
  const Value y = emit(layers::Scale(0.5F), {emit(layers::Scale(2.0F), {x})});
  graph->output("y", y);
  const TensorDesc desc = graph->info(y.id).desc;
  return make_plan(graph, std::vector<KernelSpec>(2, {.in = {desc}, .out = {desc}}),
                   make_schedule(*graph));
}

// Returns a profile in which the first node takes 1 s, the second 3 s and the copy 0.5 s.
MeasuredProfile measured_twice() {
  MeasuredProfile profile;
  profile.add({{0, 1}, {1, 4}, {4, 4.5}});
  profile.add({{0, 1}, {1, 4}, {4, 4.5}});
  return profile;
}

constexpr Ceilings slow_device{.flops_per_second = 1000, .bytes_per_second = 1000};

TEST(Profile, IsTheMeanOfItsSteps) {
  const std::vector<ProfiledOp> nodes = profiled_nodes(two_scales(), measured_twice(), slow_device);
  ASSERT_EQ(nodes.size(), 2U);
  EXPECT_DOUBLE_EQ(nodes[0].seconds, 1);
  EXPECT_DOUBLE_EQ(nodes[1].seconds, 3);
  EXPECT_DOUBLE_EQ(nodes[0].bytes, 1000);
  EXPECT_DOUBLE_EQ(nodes[0].roofline_seconds, 1);
}

TEST(Profile, AddsUpKindsOfOperations) {
  const std::vector<ProfiledOp> kinds =
      by_kind(profiled_nodes(two_scales(), measured_twice(), slow_device));
  ASSERT_EQ(kinds.size(), 1U);
  EXPECT_EQ(kinds[0].nodes, 2U);
  EXPECT_DOUBLE_EQ(kinds[0].seconds, 4);
}

TEST(Profile, StartsAnewAfterThePlanChanged) {
  MeasuredProfile profile = measured_twice();
  profile.add({{0, 1}});
  EXPECT_EQ(profile.steps, 1);
}

TEST(Profile, TableHasTheCostliestFirst) {
  const std::vector<std::string> lines =
      profile_table(profiled_nodes(two_scales(), measured_twice(), slow_device), 1);
  ASSERT_EQ(lines.size(), 2U);
  EXPECT_THAT(lines[0], AllOf(HasSubstr("operation"), HasSubstr("GFLOP/s"), HasSubstr("share")));
  EXPECT_THAT(lines[1], AllOf(HasSubstr("3000.000"), HasSubstr("75.00"), HasSubstr("33.3")));
  EXPECT_THAT(profile_table(profiled_nodes(two_scales(), measured_twice(), std::nullopt), 1)[1],
              testing::EndsWith(" -"));
}

TEST(Profile, HasLanesAndMemoryInTheResult) {
  const StepPlan plan = two_scales();
  const Timeline planned{{0, 0.5}, {0.5, 1}, {1, 1}};
  const Json json = profile_json(plan, measured_twice(), slow_device, &planned);
  EXPECT_EQ(json["steps"], 2);
  ASSERT_EQ(json["lanes"].size(), 2U);
  EXPECT_EQ(json["lanes"][0]["lane"], "compute");
  EXPECT_EQ(json["lanes"][0]["spans"][1]["end"], 4.0);
  EXPECT_EQ(json["lanes"][0]["spans"][1]["planned_end"], 1.0);
  const Json& memory = json["memory"];
  EXPECT_EQ(memory["arena_bytes"], plan.memory.device_bytes);
  EXPECT_EQ(memory["steps"].size(), 3U);
  EXPECT_EQ(memory["biggest"][0]["bytes"], 500);
  EXPECT_TRUE(memory["moved"].empty()) << "the copy of an output is no swap";
  EXPECT_EQ(memory["steps"][memory["peak_step"].get<std::size_t>()]["bytes"],
            plan.memory.lower_bound_bytes);
  EXPECT_FALSE(
      profile_json(plan, measured_twice(), std::nullopt, nullptr)["lanes"][0]["spans"][0].contains(
          "planned_start"));
}

TEST(ProfileRecord, MarksTheStepsThatItSlowed) {
  MeasuredProfile profile;
  Json result{{"steps", Json::array({Json::object(), Json::object()})}};
  ProfileRecord record(profile, result);
  EXPECT_FALSE(record.wants_timeline(0)) << "the warm-up is not profiled";
  EXPECT_TRUE(record.wants_timeline(10));
  EXPECT_FALSE(record.wants_timeline(11));
  const Timeline timeline{{0, 1}, {1, 2}, {2, 3}};
  record.step_finished({.number = 1, .timeline = &timeline});
  record.end({});
  EXPECT_EQ(profile.steps, 1);
  EXPECT_EQ(result["steps"][1]["profiled"], true);
}

}  // namespace
}  // namespace cnn::bench
