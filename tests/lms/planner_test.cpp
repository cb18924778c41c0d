#include "lms/planner.h"

#include <algorithm>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lms/planned.h"
#include "tests/lms/chain_step.h"
#include "tests/support/error_of.h"

namespace cnn::lms {
namespace {

using ::testing::HasSubstr;
using tests::chain_step;
using tests::error_of;
using tests::StepCase;
using tests::texts;

constexpr std::size_t variables = 1000;

// Returns a chain whose images need (`layers` + 1) * `channels` * 64 bytes; its last image is the
// loss.
StepCase chain_with_loss(std::size_t layers, std::int64_t channels = 1) {
  StepCase c = chain_step(layers, channels);
  const Node& last = c.graph->nodes()[layers - 1];
  c.graph->output("base_loss", {c.graph.get(), last.outputs.front()});
  c.settle({c.graph.get(), c.graph->nodes()[layers].outputs.front()});
  c.costs.out_bytes_per_second = c.costs.in_bytes_per_second = 64;
  return c;
}

// Returns a planner for an arena of `arena` bytes.
Planner planner_for(std::size_t arena, const std::string& policy = "planned",
                    const Options& options = {}) {
  return Planner({.policy = policy,
                  .options = options,
                  .budget = variables + arena,
                  .resident_bytes = variables,
                  .host_bytes = 1U << 20U});
}

// Returns a step with two branches that begin at the same gradient and activation, and whether
// they take turns in the plan of a policy.
StepCase branched_step(bool exchanges) {
  StepCase c;
  const Value x = c.make_image("conv", {c.images()}, 40);
  c.graph->output("base_loss", x);
  const Value gradient = c.make_image("loss_backward", {x}, 40);
  std::vector<Value> ends;
  for (int branch = 0; branch < 2; ++branch) {
    const Value gated = c.make_image("relu_backward", {gradient, x}, 10);
    ends.push_back(c.make_image("conv_backward_data", {gated}, 20));
  }
  const Value sum = c.make_image("add", ends, 20);
  if (exchanges) {
    emit(tests::Scale(2, {.lane = Lane::communicate}), {sum});
  }
  c.settle(gradient);
  c.costs.out_bytes_per_second = c.costs.in_bytes_per_second = 1e6;
  return c;
}

bool branches_take_turns(const StepCase& c, const std::string& policy) {
  const StepPlan unlimited = c.planned(c.schedule);
  Planner planner = planner_for(unlimited.memory.device_bytes - 1, policy);
  planner.plan(unlimited, c.costs);
  const std::vector<std::string> steps = texts(*c.graph, planner.schedule());
  const auto place = [&](const std::string& step) {
    return std::ranges::find_if(steps, [&](const auto& one) { return one.starts_with(step); });
  };
  EXPECT_NE(place("conv_backward_data#3"), steps.end());
  return place("relu_backward#4") < place("conv_backward_data#3");
}

TEST(Planner, OrdersBranchesForItsOwnPolicyWhereNothingIsExchanged) {
  EXPECT_TRUE(branches_take_turns(branched_step(false), "planned"));
  EXPECT_FALSE(branches_take_turns(branched_step(true), "planned"));
  EXPECT_FALSE(branches_take_turns(branched_step(false), "tflms1"));
}

TEST(Planner, CountsNoExchangeAsComputing) {
  const auto compute_seconds = [](const StepCase& c) {
    const StepPlan unlimited = c.planned(c.schedule);
    Planner planner = planner_for(unlimited.memory.device_bytes);
    planner.plan(unlimited, c.costs);
    return planner.report().compute_seconds;
  };
  const double seconds = compute_seconds(branched_step(false));
  EXPECT_GT(seconds, 0);
  EXPECT_DOUBLE_EQ(compute_seconds(branched_step(true)), seconds);
}

TEST(Planner, LeavesAStepThatFitsAsItIs) {
  const StepCase c = chain_with_loss(6);
  const StepPlan unlimited = c.planned(c.schedule);
  Planner planner = planner_for(unlimited.memory.device_bytes);
  const StepPlan plan = planner.plan(unlimited, c.costs);
  const PlanReport& report = planner.report();
  EXPECT_FALSE(report.necessary);
  EXPECT_TRUE(report.fits);
  EXPECT_FALSE(report.summary.moves());
  EXPECT_EQ(report.need, variables + unlimited.memory.device_bytes);
  EXPECT_EQ(report.peak, report.need);
  EXPECT_EQ(report.host, 0U);
  EXPECT_EQ(report.recompute_seconds, 0);
  EXPECT_DOUBLE_EQ(report.compute_seconds, static_cast<double>(c.graph->nodes().size()));
  EXPECT_DOUBLE_EQ(report.lower_bound_seconds, report.compute_seconds);
  EXPECT_EQ(plan.schedule.steps.size(), c.planned(c.schedule).schedule.steps.size());
}

TEST(Planner, PlansAStepThatIsOneByteTooLarge) {
  const StepCase c = chain_with_loss(6);
  const StepPlan unlimited = c.planned(c.schedule);
  Planner planner = planner_for(unlimited.memory.device_bytes - 1);
  const StepPlan plan = planner.plan(unlimited, c.costs);
  const PlanReport& report = planner.report();
  EXPECT_TRUE(report.necessary);
  EXPECT_TRUE(report.fits);
  EXPECT_TRUE(report.summary.moves());
  EXPECT_LE(report.peak, report.budget);
  EXPECT_LE(report.live_peak, report.peak);
  EXPECT_EQ(report.peak, variables + plan.memory.device_bytes);
  EXPECT_GE(report.predicted_seconds, report.lower_bound_seconds - 1e-9);
  EXPECT_EQ(c.outcome(planner.schedule()), c.outcome(c.schedule));
}

TEST(Planner, SaysThatNothingFitsAndWhatWould) {
  const StepCase c = chain_with_loss(6);
  const StepPlan unlimited = c.planned(c.schedule);
  Planner tight = planner_for(64);
  tight.plan(unlimited, c.costs);
  EXPECT_FALSE(tight.report().fits);
  EXPECT_EQ(tight.report().floor, tight.min_bytes(unlimited, c.costs));
  Planner enough = planner_for(tight.report().floor - variables);
  enough.plan(unlimited, c.costs);
  EXPECT_TRUE(enough.report().fits);
}

TEST(Planner, DoesNotFitWhereTheHostIsTooSmall) {
  const StepCase c = chain_with_loss(6);
  const StepPlan unlimited = c.planned(c.schedule);
  Planner planner({.policy = "reclaim",
                   .options = {},
                   .budget = variables + std::size_t{64} * 5,
                   .resident_bytes = variables,
                   .host_bytes = 63});
  planner.plan(unlimited, c.costs);
  EXPECT_GT(planner.report().host, 63U);
  EXPECT_LE(planner.report().peak, planner.report().budget);
  EXPECT_FALSE(planner.report().fits);
}

TEST(Planner, HasAnArenaOfNothingWhereTheVariablesTakeAll) {
  for (const std::size_t budget : {std::size_t{0}, variables - 1, variables}) {
    const Planner planner({.policy = "planned",
                           .options = {},
                           .budget = budget,
                           .resident_bytes = variables,
                           .host_bytes = 7});
    EXPECT_EQ(planner.limits().device, 0U) << budget;
    EXPECT_EQ(planner.limits().host, 7U);
  }
}

TEST(Planner, LetsNothingMoveWhereNoTensorMay) {
  const StepCase c = chain_with_loss(6);
  const StepPlan unlimited = c.planned(c.schedule);
  Planner planner = planner_for(64, "planned", {.n_tensors = 0});
  planner.plan(unlimited, c.costs);
  EXPECT_TRUE(planner.report().necessary);
  EXPECT_FALSE(planner.report().fits);
  EXPECT_FALSE(planner.report().summary.moves());
}

TEST(Planner, PlansByAScheduleFromElsewhere) {
  const StepCase c = chain_with_loss(6);
  const StepPlan unlimited = c.planned(c.schedule);
  const std::size_t arena = unlimited.memory.device_bytes - 64;
  Planner first = planner_for(arena), second = planner_for(arena);
  const StepPlan made = first.plan(unlimited, c.costs);
  const StepPlan same = second.plan_by(first.schedule(), first.enough(), unlimited, c.costs);
  EXPECT_EQ(texts(*c.graph, same.schedule), texts(*c.graph, made.schedule));
  EXPECT_EQ(second.report().peak, first.report().peak);
  EXPECT_EQ(second.report().kept, first.report().kept);
  EXPECT_DOUBLE_EQ(second.report().predicted_seconds, first.report().predicted_seconds);
  EXPECT_EQ(second.policy_seconds(), 0);
}

TEST(Planner, RefusesAScheduleOfAnotherStep) {
  const StepCase c = chain_with_loss(6), other = chain_with_loss(5);
  const StepPlan unlimited = c.planned(c.schedule);
  Planner planner = planner_for(1U << 20U);
  EXPECT_THAT(error_of([&] { planner.plan_by(other.schedule, 0, unlimited, c.costs); }),
              HasSubstr("uses conv#4, which is not on the device"));
  EXPECT_NE(error_of([&] { planner.plan_by({}, 0, unlimited, c.costs); }), "");
}

TEST(Planner, NamesAPolicyThatIsUnknown) {
  const StepCase c = chain_with_loss(6);
  Planner planner = planner_for(64, "nonesuch");
  EXPECT_THAT(error_of([&] { planner.plan(c.planned(c.schedule), c.costs); }),
              HasSubstr("nonesuch"));
}

TEST(RecomputeSeconds, SumsTheNodesThatRunAgain) {
  StepCase c = chain_step(3);
  c.costs.seconds[0] = 7;
  Schedule schedule = c.schedule;
  EXPECT_EQ(recompute_seconds(*c.graph, schedule, c.costs), 0);
  const Step again = schedule.steps[0];
  schedule.steps.insert(schedule.steps.begin() + 4, again);
  EXPECT_EQ(recompute_seconds(*c.graph, schedule, c.costs), 7);
  schedule.steps.insert(schedule.steps.begin() + 6, again);
  EXPECT_EQ(recompute_seconds(*c.graph, schedule, c.costs), 14);
}

// Policies that do not know the disk use it as well.
TEST(Planner, LetsTheDiskTakeWhatTheHostHasNoRoomFor) {
  constexpr std::size_t image = disk_alignment;
  StepCase c = chain_with_loss(8, 64);
  c.costs.store_bytes_per_second = c.costs.load_bytes_per_second = image;
  const StepPlan unlimited = c.planned(c.schedule);
  for (const char* policy : {"reclaim", "vdnn_all", "planned"}) {
    SCOPED_TRACE(policy);
    PlannerOptions options{.policy = policy,
                           .options = {.recompute = Recomputation::off},
                           .budget = unlimited.memory.device_bytes - 4 * image,
                           .host_bytes = 2 * image};
    Planner without(options);
    without.plan(unlimited, c.costs);
    EXPECT_FALSE(without.report().fits);
    options.disk_bytes = std::size_t{1} << 30U;
    Planner with(options);
    const StepPlan plan = with.plan(unlimited, c.costs);
    EXPECT_TRUE(with.report().fits);
    EXPECT_GT(with.report().summary.stored_tensors, 0U);
    EXPECT_EQ(with.report().disk, plan.memory.disk_bytes);
    EXPECT_LE(with.report().host, 2 * image);
    EXPECT_LE(with.report().lower_bound_seconds, with.report().predicted_seconds * (1 + 1e-9));
    EXPECT_EQ(c.outcome(with.schedule()), c.outcome(c.schedule));
    Planner again(options);
    const StepPlan same = again.plan_by(with.schedule(), with.enough(), unlimited, c.costs);
    EXPECT_EQ(to_string(same), to_string(plan));
  }
}

}  // namespace
}  // namespace cnn::lms
