#include "bench/run/lms_observer.h"

#include <array>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <string>
#include <vector>

#include "bench/session/session.h"
#include "bench/session/team.h"
#include "tests/bench/session/small_team.h"
#include "tests/support/swapping_step.h"

namespace cnn::bench {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr std::int64_t two_mib = (std::int64_t{2} << 20U) / 4;  // number of floats

// Returns a timeline of swapping_plan()'s step with these seconds for its eight parts, one after
// another.
Timeline swapped_timeline(const std::array<double, 8>& seconds) {
  Timeline timeline;
  double now = 0;
  for (const double each : seconds) {
    timeline.push_back({.start = now, .end = now + each});
    now += each;
  }
  return timeline;
}

Costs expected_of_four() {
  return {.seconds = {9, 9, 9, 9}, .out_bytes_per_second = 5, .in_bytes_per_second = 6};
}

TEST(MeasuredCosts, AreTheMediansOfNodes) {
  const StepPlan plan = tests::swapping_plan();
  MeasuredCosts measured;
  EXPECT_TRUE(measured.is_empty());
  for (const double second : {1.0, 5.0, 3.0}) {
    measured.add(plan, swapped_timeline({1, 2, second, 1, 4, 1, 6, 1}));
  }
  EXPECT_FALSE(measured.is_empty());
  EXPECT_EQ(measured.costs(expected_of_four()).seconds, (std::vector<double>{2, 3, 4, 6}));
}

TEST(MeasuredCosts, CountWhatThePlanMovesAndNoInputsOrResults) {
  const StepPlan plan = tests::swapping_plan(two_mib);
  MeasuredCosts measured;
  measured.add(plan, swapped_timeline({100, 1, 1, 0.5, 1, 0.25, 1, 100}));
  EXPECT_EQ(measured.out().bytes, 4.0 * two_mib);
  EXPECT_EQ(measured.out().seconds, 0.5);
  EXPECT_EQ(measured.in().seconds, 0.25);
  const Costs costs = measured.costs(expected_of_four());
  EXPECT_EQ(costs.out_bytes_per_second, 4.0 * two_mib / 0.5);
  EXPECT_EQ(costs.in_bytes_per_second, 4.0 * two_mib / 0.25);
}

TEST(MeasuredCosts, LeaveALinkThatTakesNoTime) {
  MeasuredCosts measured;
  measured.add(tests::swapping_plan(two_mib), swapped_timeline({1, 1, 1, 1, 1, 1, 1, 1}));
  EXPECT_EQ(measured.costs({.seconds = {9, 9, 9, 9}}).out_bytes_per_second, 0);
}

TEST(MeasuredCosts, KeepTheExpectedLinkWhereTooLittleWasCopied) {
  MeasuredCosts measured;
  measured.add(tests::swapping_plan(), swapped_timeline({1, 1, 1, 1, 1, 1, 1, 1}));
  EXPECT_FALSE(measured.out().rate());
  EXPECT_EQ(measured.costs(expected_of_four()).out_bytes_per_second, 5);
  EXPECT_EQ(measured.costs(expected_of_four()).in_bytes_per_second, 6);
}

TEST(MeasuredCosts, HaveTheMeanStallsOfTheirSteps) {
  const StepPlan plan = tests::swapping_plan();
  const Timeline one = swapped_timeline({1, 1, 1, 1, 1, 4, 1, 1});
  const Timeline other = swapped_timeline({1, 1, 1, 1, 1, 2, 1, 1});
  MeasuredCosts measured;
  measured.add(plan, one);
  measured.add(plan, other);
  const lms::Stalls a = lms::stalls(*plan.graph, plan.schedule, one);
  const lms::Stalls b = lms::stalls(*plan.graph, plan.schedule, other);
  ASSERT_NE(a.swap_in, b.swap_in);
  EXPECT_DOUBLE_EQ(measured.stalls().swap_in, (a.swap_in + b.swap_in) / 2);
  EXPECT_DOUBLE_EQ(measured.stalls().total(), (a.total() + b.total()) / 2);
  EXPECT_EQ(measured.per_step(3), 1.5);
}

std::vector<std::int64_t> timed_by(const LmsObserver& observer) {
  std::vector<std::int64_t> steps;
  for (std::int64_t number = -9; number <= 9; ++number) {
    if (observer.wants_timeline(number)) {
      steps.push_back(number);
    }
  }
  return steps;
}

TEST(LmsObserver, TimesNothingWhereThePlanMovesNothing) {
  tests::SmallTeam run({"--lms", "--num_warmup_batches=9"});
  run.team.start(0);
  Console console;
  Json result;
  LmsObserver observer(run.team, console, result, /*has_plan_file=*/false);
  observer.start({.timed_steps = 9});
  EXPECT_THAT(timed_by(observer), testing::IsEmpty());
  testing::internal::CaptureStderr();
  observer.timing_starts();
  observer.end({.step_seconds = std::array{0.1}});
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  EXPECT_TRUE(result.is_null());
}

TEST(LmsObserver, PlansAgainByTheWarmUpAndTellsWhatTheStepsTook) {
  tests::SmallTeam run({"--model=resnet20", "--batch_size=8", "--lms", "--device_memory_mb=11",
                        "--emulate_link_gbps=4", "--lms_size_threshold=8", "--lms_policy=tflms1",
                        "--num_warmup_batches=9"});
  ASSERT_TRUE(run.team.first().lms()->active());
  run.team.start(0);
  Console console;
  Json result;
  LmsObserver observer(run.team, console, result, /*has_plan_file=*/false);
  observer.start({.timed_steps = 9});
  EXPECT_THAT(timed_by(observer), testing::ElementsAre(-4, -3, -2, -1, 0, 1, 8, 9));
  testing::internal::CaptureStderr();
  Timeline timeline;
  run.team.step(0, 0.1, &timeline);
  observer.step_finished({.number = 0, .timeline = &timeline});
  observer.timing_starts();
  EXPECT_THAT(
      testing::internal::GetCapturedStderr(),
      AllOf(testing::StartsWith("[LMS][0] planned again by measured times:\n"),
            HasSubstr("[LMS][0] predicted step "), testing::Not(HasSubstr("not measured here"))));
  EXPECT_GT(result["plan"]["lms"]["swapped_tensors"], 0);
  run.team.step(1, 0.1, &timeline);
  observer.step_finished({.number = 1, .timeline = &timeline});
  testing::internal::CaptureStderr();
  observer.end({.timed_steps = 3, .step_seconds = std::array{0.25, 0.5, 9.0}});
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              AllOf(HasSubstr("[LMS][0] measured step median 500.0 ms ("),
                    HasSubstr("[LMS][0] measured stalls ")));
  const Json& lms = result["plan"]["lms"];
  EXPECT_EQ(lms["measured_step_seconds"], 0.5);
  EXPECT_EQ(lms["measured_peak_bytes"], lms["predicted_peak_bytes"]);
  EXPECT_EQ(lms["replaced_peak_bytes"], or_null(run.team.first().replaced_peak_bytes()));
  EXPECT_GT(lms["measured_out_bytes"], 0);
  EXPECT_TRUE(lms["stall_seconds"].contains("swap_in"));
}

// Processes other than the first know no path of a file.
TEST(LmsObserver, TimesTheStepsOfTheFirstProcessWhosePlanComesFromAFile) {
  for (const char* const megabytes : {"--device_memory_mb=11", "--device_memory_mb=1000"}) {
    tests::SmallTeam run({"--model=resnet20", "--batch_size=8", "--lms", megabytes,
                          "--emulate_link_gbps=4", "--lms_size_threshold=8", "--lms_policy=tflms1",
                          "--num_warmup_batches=9"});
    Console console;
    Json result;
    LmsObserver observer(run.team, console, result, /*has_plan_file=*/true);
    observer.start({.timed_steps = 9});
    EXPECT_THAT(timed_by(observer), testing::ElementsAre(1, 8, 9)) << megabytes;
  }
}

}  // namespace
}  // namespace cnn::bench
