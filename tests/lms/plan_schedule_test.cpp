#include "lms/plan_schedule.h"

#include <algorithm>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <random>
#include <string>
#include <vector>

#include "runtime/timeline.h"
#include "tests/lms/chain_step.h"
#include "tests/lms/random_decisions.h"
#include "tests/lms/random_step.h"

namespace cnn::lms {
namespace {

using ::testing::Contains;
using tests::chain_step;
using tests::StepCase;
using tests::texts;

// Returns the schedule of a chain with this decision on the output of its first layer.
Schedule decided(const StepCase& c, TensorDecision decision, SyncMode sync = SyncMode::none) {
  const Request request = c.request();
  const PlanningProblem problem = planning_problem(request);
  TensorDecisions decisions(problem.roots.size(), TensorDecision::keep);
  const TensorId first = c.graph->nodes().front().outputs.front();
  for (std::size_t r = 0; r < decisions.size(); ++r) {
    if (problem.roots[r].tensor == first) {
      decisions[r] = decision;
    }
  }
  ScheduleExpander expander(problem);
  const ExpandedSchedule& expanded = expander.expand(decisions);
  Evaluator evaluator(problem, request.budget.device, sync);
  evaluator.evaluate(expanded);
  return schedule_of(request, problem, expanded, evaluator);
}

TEST(PlanSchedule, IsTheGivenOneWhereEverythingStays) {
  const StepCase c = chain_step(3);
  EXPECT_EQ(texts(*c.graph, decided(c, TensorDecision::keep)), texts(*c.graph, c.schedule));
}

TEST(PlanSchedule, HasTheCopiesOfATensorThatLeaves) {
  StepCase c = chain_step(4);
  c.costs.out_bytes_per_second = c.costs.in_bytes_per_second = 64;
  const Schedule schedule = decided(c, TensorDecision::swap);
  const std::vector<std::string> steps = texts(*c.graph, schedule);
  const auto place = [&](const std::string& start) {
    std::size_t s = 0;
    while (s < steps.size() && !steps[s].starts_with(start)) {
      ++s;
    }
    return s;
  };
  EXPECT_EQ(place("offload conv#0"), place("conv#1") + 1) << "right after its last use";
  EXPECT_LT(place("offload conv#0"), place("fetch conv#0"));
  EXPECT_LT(place("fetch conv#0"), place("conv_backward_weights#11"))
      << "this step reads the tensor";
  EXPECT_EQ(steps.size(), c.schedule.steps.size() + 2);
  EXPECT_EQ(c.outcome(schedule), c.outcome(c.schedule));
}

// The swap-out takes as long as three layers, so the last layer waits for its bytes.
TEST(PlanSchedule, LetsAStepWaitForTheBytesOfACopyOut) {
  StepCase c = chain_step(4);
  c.costs.out_bytes_per_second = 64.0 / 3;
  c.costs.in_bytes_per_second = 64;
  c.budget.device = std::size_t{64} * 4;
  const std::vector<std::string> steps = texts(*c.graph, decided(c, TensorDecision::swap));
  ASSERT_EQ(steps.at(2), "offload conv#0");
  EXPECT_EQ(steps.at(5), "loss_backward#4 <2");
  c.budget.device = std::size_t{64} * 9;
  EXPECT_THAT(texts(*c.graph, decided(c, TensorDecision::swap)), Contains("loss_backward#4"));
}

TEST(PlanSchedule, RunsTheMakerOfADroppedTensorAgain) {
  const StepCase c = chain_step(3);
  const Schedule schedule = decided(c, TensorDecision::drop);
  EXPECT_EQ(std::ranges::count(texts(*c.graph, schedule), "conv#0"), 2);
  EXPECT_EQ(schedule.steps.size(), c.schedule.steps.size() + 1);
  EXPECT_EQ(c.outcome(schedule), c.outcome(c.schedule));
}

TEST(PlanSchedule, LetsComputeWaitForCopiesInSyncModes) {
  StepCase c = chain_step(4);
  c.costs.out_bytes_per_second = c.costs.in_bytes_per_second = 64;
  EXPECT_THAT(texts(*c.graph, decided(c, TensorDecision::swap)), Contains("conv#2"));
  c.options.sync_mode = SyncMode::both;
  EXPECT_THAT(texts(*c.graph, decided(c, TensorDecision::swap, SyncMode::both)),
              Contains("conv#2 <2"));
}

TEST(PlanOutcome, IsWhatPlacingAndSimulatingSay) {
  StepCase c = chain_step(6);
  c.costs.out_bytes_per_second = c.costs.in_bytes_per_second = 32;
  const Outcome kept = outcome_of(c.request(), c.schedule);
  EXPECT_EQ(kept.device_bytes, c.planned(c.schedule).memory.device_bytes);
  EXPECT_EQ(kept.host_bytes, 0U);
  EXPECT_DOUBLE_EQ(kept.seconds, static_cast<double>(c.graph->nodes().size()));
  const Schedule swapped = decided(c, TensorDecision::swap);
  const StepPlan plan = c.planned(swapped);
  const Outcome outcome = outcome_of(c.request(), swapped);
  EXPECT_EQ(outcome.device_bytes, plan.memory.device_bytes);
  EXPECT_EQ(outcome.host_bytes, 64U);
  EXPECT_DOUBLE_EQ(outcome.seconds, end_of(simulate(plan, c.costs)));
  const Outcome again = outcome_of(c.request(), decided(c, TensorDecision::drop));
  EXPECT_DOUBLE_EQ(again.seconds, kept.seconds + 1);
}

// Whatever is decided, each step finds what it reads on the device, and the step has the results of
// the given schedule. Ample memory lets copies be omitted; little lets them wait for each other.
TEST(PlanSchedule, RunsWithAnyDecisions) {
  int swapped_within_pass = 0;
  for (unsigned seed = 0; seed < 100 && !HasFailure(); ++seed) {
    SCOPED_TRACE(seed);
    StepCase c = tests::random_step(seed);
    c.options.within_pass = seed % 3 != 0;
    c.options.sync_mode = seed % 5 == 0 ? static_cast<SyncMode>(seed / 5 % 4) : SyncMode::none;
    const Request request = c.request();
    const PlanningProblem problem = planning_problem(request);
    const std::vector<float> expected = c.outcome(c.schedule);
    std::mt19937 random(seed);
    ScheduleExpander expander(problem);
    TensorDecisions decisions(problem.roots.size(), TensorDecision::keep);
    for (int plan = 0; plan < 12; ++plan) {
      for (int change = 0; change < 3; ++change) {
        tests::change_one(decisions, problem, random, c.options.within_pass);
      }
      const ExpandedSchedule& expanded = expander.expand(decisions);
      Evaluator evaluator(problem, plan % 3 == 0 ? std::size_t{1} << 20U : random() % 4096,
                          c.options.sync_mode);
      evaluator.evaluate(expanded);
      if (plan % 2 == 0) {
        evaluator.tighten(expanded, 0);
      }
      EXPECT_EQ(c.outcome(schedule_of(request, problem, expanded, evaluator)), expected);
      swapped_within_pass +=
          static_cast<int>(std::ranges::count(decisions, TensorDecision::swap_always));
    }
  }
  EXPECT_GT(swapped_within_pass, 100);
}

}  // namespace
}  // namespace cnn::lms
