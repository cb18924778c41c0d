#include "bench/session/memory_profile.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <memory>
#include <string>

#include "tests/support/swapping_step.h"

namespace cnn::bench {
namespace {

Timeline seconds_of_steps(std::size_t steps) {
  Timeline timeline;
  for (std::size_t step = 0; step < steps; ++step) {
    timeline.push_back({.start = static_cast<double>(step), .end = static_cast<double>(step + 1)});
  }
  return timeline;
}

Json profile_of_memory(const StepPlan& plan) {
  return memory_profile_json(plan, seconds_of_steps(plan.schedule.steps.size()));
}

TEST(MemoryProfile, HasTheLiveBytesAtTheStartOfEachStep) {
  const StepPlan plan = tests::swapping_plan();
  const Json profile = profile_of_memory(plan);
  ASSERT_EQ(profile["steps"].size(), plan.schedule.steps.size());
  std::size_t most = 0;
  for (std::size_t step = 0; step < profile["steps"].size(); ++step) {
    EXPECT_EQ(profile["steps"][step]["start"], static_cast<double>(step));
    most = std::max(most, profile["steps"][step]["bytes"].get<std::size_t>());
  }
  EXPECT_EQ(most, plan.memory.lower_bound_bytes);
  EXPECT_EQ(profile["steps"][profile["peak_step"].get<std::size_t>()]["bytes"], most);
  EXPECT_EQ(profile["arena_bytes"], plan.memory.device_bytes);
}

TEST(MemoryProfile, ListsWhatThePlanMovesAndNotTheResults) {
  const Json moved = profile_of_memory(tests::swapping_plan())["moved"];
  ASSERT_EQ(moved.size(), 1U);
  EXPECT_EQ(moved[0]["at_step"], 3);
  EXPECT_EQ(moved[0]["bytes"], 256);
}

TEST(MemoryProfile, CountsWhatIsMadeInPlaceOnce) {
  auto graph = std::make_shared<Graph>();
  Value x = emit(tests::Scale(2), {graph->state("x", tests::floats(64), {}, false)});
  for (int i = 0; i < 3; ++i) {
    x = emit(tests::Scale(2, {.in_place = true}), {x});
  }
  graph->output("y", x);
  const Json profile = profile_of_memory(make_plan(graph, tests::test_kernels()));
  for (const Json& step : profile["steps"]) {
    EXPECT_EQ(step["bytes"], 256);
  }
}

TEST(MemoryProfile, NamesWorkspacesByTheirNode) {
  auto graph = std::make_shared<Graph>();
  const Value x = graph->state("x", tests::floats(64), {}, false);
  graph->output("y", emit(tests::Scale(2), {x}));
  const Json biggest =
      profile_of_memory(make_plan(graph, tests::test_kernels({.workspace = 1024})))["biggest"];
  EXPECT_EQ(biggest[0]["tensor"], "workspace of scale#0");
  EXPECT_EQ(biggest[0]["bytes"], 1024);
  EXPECT_EQ(biggest[1]["bytes"], 256);
}

// Twenty tensors of growing sizes all live until the last one is made.
TEST(MemoryProfile, NamesTheTwelveBiggestAtThePeak) {
  auto graph = std::make_shared<Graph>();
  for (int i = 1; i <= 20; ++i) {
    const Value x = graph->state("x" + std::to_string(i), tests::floats(64 * i), {}, false);
    graph->output("y" + std::to_string(i), emit(tests::Scale(2), {x}));
  }
  StepPlan plan = make_plan(graph, tests::test_kernels());
  const Json biggest = profile_of_memory(plan)["biggest"];
  EXPECT_LE(biggest.size(), 12U);
  for (std::size_t i = 1; i < biggest.size(); ++i) {
    EXPECT_GE(biggest[i - 1]["bytes"], biggest[i]["bytes"]);
  }
}

}  // namespace
}  // namespace cnn::bench
