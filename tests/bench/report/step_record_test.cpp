#include "bench/report/step_record.h"

#include <array>
#include <ctime>
#include <gtest/gtest.h>
#include <limits>

#include "bench/report/result_json.h"

namespace cnn::bench {
namespace {

constexpr double not_measured = std::numeric_limits<double>::quiet_NaN();

FinishedStep step(std::int64_t number, double loss) {
  return {.number = number,
          .global_step = number + 10,
          .values = {.seconds = 0.1 + 0.2, .top_1 = 0.5},
          .total_loss = loss,
          .loss = loss};
}

TEST(StepRecord, GivesTheSectionsOfTheSteps) {
  constexpr std::array<double, 2> seconds{0.1, 0.3};
  for (const bool accuracies : {false, true}) {
    Json result = new_result({.version = "0.1"});
    StepRecord record(result, {.accuracies = accuracies});
    record.start({.global_batch = 4, .warm_up = 1, .timed_steps = 2});
    record.step_finished(step(0, 9));
    record.step_finished(step(1, 7.25));
    record.step_finished(step(2, not_measured));
    record.end({.timed_steps = 2, .images_per_sec = 10, .step_seconds = seconds});
    const Json json = Json::parse(result.dump());
    EXPECT_EQ(json["warm_up_losses"], Json::array({9.0}));
    ASSERT_EQ(json["steps"].size(), 2U);
    EXPECT_EQ(json["steps"][0]["loss"], 7.25);
    EXPECT_EQ(json["steps"][0]["seconds"], 0.1 + 0.2) << "seconds keep full precision";
    EXPECT_TRUE(json["steps"][1]["loss"].is_null()) << "not_measured becomes null";
    EXPECT_EQ(json["steps"][0].contains("top_1"), accuracies);
    EXPECT_EQ(json["summary"]["images_per_sec"], 20.0);
    EXPECT_EQ(json["summary"]["total_images_per_sec"], 10.0);
    EXPECT_TRUE(json["summary"]["percent_of_roofline"].is_null());
  }
}

TEST(StepRecord, SaysWhenStepsEndedByTheClockThatAllProgramsShare) {
  const auto now = [] {
    timespec time{};
    clock_gettime(CLOCK_MONOTONIC, &time);
    return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
  };
  Json result = new_result({.version = "0.1"});
  StepRecord record(result, {});
  record.start({.global_batch = 4, .timed_steps = 2});
  std::array<double, 3> times{now()};
  for (const std::size_t i : {1U, 2U}) {
    record.step_finished(step(static_cast<std::int64_t>(i), 9));
    times[i] = now();
  }
  record.end({.timed_steps = 2, .step_seconds = std::array{0.3, 0.3}});
  for (const std::size_t i : {0U, 1U}) {
    const double ended = result["steps"][i]["ended"];
    EXPECT_GE(ended, times[i] - 1e-6);
    EXPECT_LE(ended, times[i + 1] + 1e-6);
  }
}

TEST(StepRecord, KeepsTheStepsOfARunThatFailed) {
  Json result = new_result({.version = "0.1"});
  StepRecord record(result, {});
  record.start({.global_batch = 4, .warm_up = 0, .timed_steps = 5});
  record.step_finished(step(1, 7));
  constexpr std::array<double, 1> seconds{0.5};
  record.failed({.timed_steps = 1, .step_seconds = seconds}, "no room");
  EXPECT_EQ(result["steps"].size(), 1U);
  EXPECT_EQ(result["summary"]["images_per_sec"], 8.0);
}

}  // namespace
}  // namespace cnn::bench
