#include "bench/compare/run.h"

#include <filesystem>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/error.h"
#include "tests/bench/compare/runs.h"

namespace cnn::compare {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

std::string refusal_of(const std::string& text) {
  try {
    parse_run("r.json", text);
  } catch (const Error& error) {
    return error.what();
  }
  return "accepted";
}

TEST(RunFile, TellsWhatMakesRunsComparable) {
  const auto run = run_of(result_of({0.1, 0.2, 0.3}));
  EXPECT_EQ(run.images_per_step, 16);
  EXPECT_EQ(run.steps.size(), 3U);
  EXPECT_EQ(run.identity.at("model"), "resnet20");
  EXPECT_EQ(run.identity.at("images per step"), "16");
  EXPECT_EQ(run.identity.at("--fusion"), "auto");
  EXPECT_FALSE(run.identity.contains("--num_batches")) << "a longer run has the same steps";
  EXPECT_EQ(run.surroundings.at("oneDNN"), "3.2.0");
}

TEST(RunFile, DoesNotCountStepsThatWereProfiledWhereOthersAreLeft) {
  Json json = result_of({0.3, 0.1, 0.1});
  json["steps"][0]["profiled"] = true;
  EXPECT_EQ(run_of(json).steps.size(), 2U);
  EXPECT_EQ(run_of(json).images_per_step, 16);
  json["steps"][1]["profiled"] = json["steps"][2]["profiled"] = true;
  EXPECT_EQ(run_of(json).steps.size(), 3U);
}

TEST(RunFile, IsRefusedByNameIfItsFormDiffers) {
  Json json = result_of({0.1});
  json["format"] = newest_format + 1;
  EXPECT_THAT(refusal_of(json.dump()), AllOf(StartsWith("r.json: a result of form 3"),
                                             HasSubstr("reads 1 to 2"), Not(HasSubstr("\n"))));
  json["format"] = "two";
  EXPECT_THAT(refusal_of(json.dump()), HasSubstr("of form \"two\""));
}

TEST(RunFile, IsReportedAsCutOff) {
  const std::string whole = result_of({0.1, 0.2}).dump(1);
  EXPECT_THAT(refusal_of(whole.substr(0, whole.size() / 2)), HasSubstr("cut off"));
  EXPECT_THAT(refusal_of(""), HasSubstr("cut off"));
}

TEST(RunFile, IsReportedAsSomethingElse) {
  EXPECT_THAT(refusal_of("images/sec: 12\n"), HasSubstr("not JSON at line 1, column 1"));
  EXPECT_THAT(refusal_of(std::string(200'000, '[') + std::string(200'000, ']')),
              AllOf(StartsWith("r.json: "), HasSubstr("nested more deeply")));
  EXPECT_THAT(refusal_of("{\"program\": 1e999}"),
              AllOf(StartsWith("r.json: "), HasSubstr("line 1, column 13"), HasSubstr("1e999")));
  EXPECT_EQ(refusal_of(R"({"program": "cnn_benchmarks", "batch": {"global": 1, "global": 2}})"),
            "r.json: not readable: the key \"batch.global\" is there twice");
  EXPECT_THAT(refusal_of("[1, 2]"), HasSubstr("no result of cnn_benchmarks"));
  EXPECT_THAT(refusal_of("{\"program\": \"other\"}"), HasSubstr("no result of cnn_benchmarks"));
}

TEST(RunFile, IsRefusedIfTheRunFailedOrTimedNothing) {
  Json json = result_of({0.1});
  json["error"] = "no room";
  EXPECT_THAT(refusal_of(json.dump()), HasSubstr("the run failed: no room"));
  EXPECT_THAT(refusal_of(result_of({}).dump()), HasSubstr("without timed steps"));
}

TEST(RunFile, NamesAStepThatTookNoTime) {
  EXPECT_EQ(refusal_of(result_of({0.1, -0.5}).dump()),
            "r.json: a result with a damaged step: step 2 took -0.5 seconds");
  EXPECT_EQ(refusal_of(result_of({0.0}).dump()),
            "r.json: a result with a damaged step: step 1 took 0 seconds");
}

TEST(RunFile, NamesItsDamagedSection) {
  Json json = result_of({0.1});
  json["steps"][0].erase("seconds");
  EXPECT_THAT(refusal_of(json.dump()), AllOf(HasSubstr("damaged"), HasSubstr("seconds")));
}

TEST(RunFile, IsReportedAsMissingOrAFolder) {
  const auto refusal = [](const std::string& path) -> std::string {
    try {
      read_run(path);
    } catch (const Error& error) {
      return error.what();
    }
    return "accepted";
  };
  EXPECT_EQ(refusal("/no/such/file.json"), "/no/such/file.json: no such file");
  const std::string folder = std::filesystem::temp_directory_path();
  EXPECT_THAT(refusal(folder), HasSubstr(": a folder; name the files in it"));
}

TEST(RunSummary, IsTheMedianOfUndisturbedSteps) {
  std::vector<TimedStep> steps;
  for (const double seconds : {0.5, 0.1, 0.4, 0.3, 0.2, 0.6}) {
    steps.push_back({.seconds = seconds});
  }
  EXPECT_DOUBLE_EQ(summarise(steps).seconds, 0.35);
  steps.back().disturbed = true;
  EXPECT_DOUBLE_EQ(summarise(steps).seconds, 0.3);
  EXPECT_EQ(summarise(steps).disturbed, 1U);
  EXPECT_FALSE(summarise(steps).disturbed_run);
}

TEST(RunSummary, TakesAllStepsWhereTooFewAreUndisturbed) {
  std::vector<TimedStep> steps(9, {.seconds = 0.2, .disturbed = true});
  steps.resize(12, {.seconds = 0.1});
  EXPECT_DOUBLE_EQ(summarise(steps).seconds, 0.2);
  EXPECT_TRUE(summarise(steps).disturbed_run);
}

}  // namespace
}  // namespace cnn::compare
