#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <string>
#include <vector>

#include "bench/page/run_sections.h"

namespace cnn::page {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

Json steps_of(const std::vector<double>& seconds) {
  Json json{{"steps", Json::array()}};
  for (const double each : seconds) {
    json["steps"].push_back({{"step", json["steps"].size() + 1}, {"seconds", each}});
  }
  return json;
}

std::string steps_of_one(const Json& json, bool in_turns = false) {
  const ShownRun runs[] = {{"run", "a", &json}};
  return step_section(runs, in_turns);
}

std::string losses_of_one(const Json& json) {
  const ShownRun runs[] = {{"run", "a", &json}};
  return loss_section(runs);
}

TEST(StepSection, IsEmptyWithoutSteps) {
  EXPECT_EQ(steps_of_one({}), "");
  EXPECT_EQ(steps_of_one({{"steps", nullptr}}), "");
  EXPECT_EQ(step_section({}, false), "");
}

TEST(StepSection, MarksDisturbedStepsWithTheirCauses) {
  Json json = steps_of({0.1, 0.1, 0.1});
  json["steps"][1]["disturbed"] = true;
  json["steps"][1]["disturbance"] = {{"causes", {"other processes", "throttling"}}};
  json["steps"][2]["disturbed"] = "yes";  // never written by our program
  EXPECT_THAT(steps_of_one(json),
              AllOf(HasSubstr("run step 1: 100.000 ms<"),
                    HasSubstr("run step 2: 100.000 ms, disturbed: other processes, throttling<"),
                    HasSubstr("run step 3: 100.000 ms<")));
}

TEST(StepSection, ShowsTheMedianWhereTheResultHasOne) {
  Json json = steps_of({0.1, 0.2});
  EXPECT_THAT(steps_of_one(json), Not(HasSubstr("median")));
  json["summary"] = {{"median_step_seconds", 0.15}};
  EXPECT_THAT(steps_of_one(json), HasSubstr("run median 150.00 ms"));
}

TEST(StepSection, GoesByTheClockWhereAllStepsOfRunsInTurnsTellIt) {
  Json json = steps_of({0.1, 0.1});
  json["steps"][0]["ended"] = 1000.0;
  json["steps"][1]["ended"] = 1010.0;
  EXPECT_THAT(steps_of_one(json, true), HasSubstr("s, both in turns"));
  EXPECT_THAT(steps_of_one(json, true), HasSubstr(">10</text>")) << "time starts at the first step";
  EXPECT_THAT(steps_of_one(json, false), Not(HasSubstr("in turns")));
  json["steps"][1].erase("ended");
  EXPECT_THAT(steps_of_one(json, true), Not(HasSubstr("in turns")));
}

TEST(LossSection, BeginsWithTheLossesOfTheWarmUp) {
  Json json = steps_of({0.1, 0.1});
  json["steps"][0]["total_loss"] = 7.0;
  json["steps"][1]["total_loss"] = 6.0;
  json["warm_up_losses"] = {9.0, nullptr, 8.0};
  const std::string section = losses_of_one(json);
  EXPECT_THAT(section, HasSubstr("Total loss"));
  EXPECT_THAT(section, HasSubstr(">-2</text>")) << "the first of three, the last of which is 0";
  EXPECT_THAT(section, Not(HasSubstr("nan")));
  json["warm_up_losses"] = {9.0, 8.0};
  EXPECT_THAT(losses_of_one(json), AllOf(HasSubstr(">-1</text>"), Not(HasSubstr(">-2</text>"))));
}

TEST(LossSection, IsLeftOutWhereNoLossIsTold) {
  Json json = steps_of({0.1, 0.1});
  EXPECT_EQ(losses_of_one(json), "") << "an older file has no losses";
  json["steps"][0]["total_loss"] = nullptr;  // the loss was not a number
  EXPECT_EQ(losses_of_one(json), "");
  json["steps"][0]["total_loss"] = json["steps"][1]["total_loss"] = 0.0;  // forward only
  EXPECT_EQ(losses_of_one(json), "");
  EXPECT_EQ(losses_of_one({}), "");
}

}  // namespace
}  // namespace cnn::page
