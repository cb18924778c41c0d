#include "bench/report/disturbance_record.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace cnn::bench {
namespace {

TEST(DisturbanceJson, LeavesOutWhatTheSystemDidNotTell) {
  EXPECT_EQ(to_json({.involuntary_switches = 1, .cpu_seconds = 0.25}),
            Json({{"involuntary_switches", 1}, {"cpu_seconds", 0.25}}));
}

TEST(DisturbanceJson, NamesTheCauses) {
  Disturbance step{.steal_seconds = 0.5, .others_seconds = 0.125, .throttled = true};
  step.causes.add(Cause::throttling);
  step.causes.add(Cause::steal);
  EXPECT_EQ(to_json(step), Json({{"involuntary_switches", 0},
                                 {"cpu_seconds", 0.0},
                                 {"steal_seconds", 0.5},
                                 {"others_seconds", 0.125},
                                 {"throttled", true},
                                 {"causes", {"steal", "throttling"}}}));
}

// The device is throttled during the second timed stretch.
TEST(DisturbanceRecord, AddsToEachTimedStepAndToTheSummary) {
  std::uint64_t seen = 0;
  Json result{{"steps", {{{"step", 1}}, {{"step", 2}}}}, {"summary", {{"images_per_sec", 1}}}};
  Console console;
  DisturbanceRecord record(
      {}, [&seen] { return std::optional(seen); }, console, result);
  record.start({.global_batch = 1, .warm_up = 1, .timed_steps = 2});
  record.step_finished({.number = 0, .values = {.seconds = 1}});
  record.timing_starts();
  record.step_finished({.number = 1, .values = {.seconds = 1e-3}});
  record.pause();
  record.resume();
  seen = 1;
  record.step_finished({.number = 2, .values = {.seconds = 1e-3}});
  record.end({.timed_steps = 2});
  EXPECT_EQ(result["steps"][0]["disturbed"], false);
  EXPECT_EQ(result["steps"][1]["disturbed"], true);
  EXPECT_THAT(result["steps"][1]["disturbance"]["causes"], testing::Contains("throttling"));
  EXPECT_EQ(result["summary"]["disturbed_steps"], 1);
}

}  // namespace
}  // namespace cnn::bench
