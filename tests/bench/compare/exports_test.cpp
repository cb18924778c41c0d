#include "bench/compare/exports.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/bench/compare/runs.h"
#include "tests/support/error_of.h"

namespace cnn::compare {
namespace {

using testing::HasSubstr;

Runs exported_runs() {
  Runs runs;
  for (const double seconds : {0.1, 0.125, 0.2}) {
    runs.push_back(run_of(result_of({seconds, seconds, seconds}), "a,b.json"));
  }
  return runs;
}

constexpr const char* name = "resnet20, 16 images, f32, Some CPU, 2 cores";

TEST(Exports, HaveLatencyAndThroughputForBencher) {
  const Json json =
      Json::parse(export_text(exported_runs(), ExportFormat::bencher, Measure::images_per_sec));
  ASSERT_EQ(json.size(), 1U);
  const Json& benchmark = json.at(name);
  EXPECT_NEAR(benchmark["latency"]["value"].get<double>(), 0.125e9, 1);
  EXPECT_NEAR(benchmark["latency"]["lower_value"].get<double>(), 0.1e9, 1);
  EXPECT_NEAR(benchmark["latency"]["upper_value"].get<double>(), 0.2e9, 1);
  EXPECT_NEAR(benchmark["throughput"]["value"].get<double>(), 128, 1e-6);
  EXPECT_NEAR(benchmark["throughput"]["lower_value"].get<double>(), 80, 1e-6);
  EXPECT_NEAR(benchmark["throughput"]["upper_value"].get<double>(), 160, 1e-6);
}

TEST(Exports, HaveOneMeasureForGithubActionBenchmark) {
  const Json speed = Json::parse(
      export_text(exported_runs(), ExportFormat::github_action_benchmark, Measure::images_per_sec));
  ASSERT_EQ(speed.size(), 1U);
  EXPECT_EQ(speed[0]["name"], name);
  EXPECT_EQ(speed[0]["unit"], "images/sec");
  EXPECT_NEAR(speed[0]["value"].get<double>(), 128, 1e-6);
  EXPECT_EQ(speed[0]["range"], "80 to 160");
  EXPECT_THAT(speed[0]["extra"], HasSubstr("3 runs"));
  const Json time = Json::parse(
      export_text(exported_runs(), ExportFormat::github_action_benchmark, Measure::step_seconds));
  EXPECT_EQ(time[0]["unit"], "seconds");
  EXPECT_EQ(time[0]["value"], 0.125);
}

TEST(Exports, HaveALineForEachRunAsCsv) {
  const std::string text = export_text(exported_runs(), ExportFormat::csv, Measure::images_per_sec);
  EXPECT_EQ(std::ranges::count(text, '\n'), 4);
  EXPECT_THAT(text, HasSubstr("benchmark,started,commit"));
  EXPECT_THAT(text, HasSubstr("\"resnet20, 16 images, f32, Some CPU, 2 cores\",2026-"));
  EXPECT_THAT(text, HasSubstr(",,,here,128,0.125,3,0,\"a,b.json\"\n"));
}

TEST(Exports, NameConfigurationsApartThatDifferInFlagsOnly) {
  Runs runs = exported_runs();
  Json other = result_of({0.1, 0.1, 0.1});
  other["config"]["fusion"] = "none";
  runs.push_back(run_of(other));
  const Json json =
      Json::parse(export_text(std::move(runs), ExportFormat::bencher, Measure::images_per_sec));
  EXPECT_EQ(json.size(), 2U);
  EXPECT_THAT(json.dump(), HasSubstr("--fusion=none"));
}

TEST(Exports, RefuseUnknownNames) {
  EXPECT_THAT(tests::error_of([] { export_format("xml"); }),
              HasSubstr("--export=xml: there are bencher, github-action-benchmark, csv"));
  EXPECT_THAT(tests::error_of([] { measure_of("watts"); }),
              HasSubstr("--measure=watts: there are images_per_sec, step_seconds"));
}

}  // namespace
}  // namespace cnn::compare
