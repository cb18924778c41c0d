#include "bench/report/benchmark_log.h"

#include <algorithm>
#include <chrono>
#include <fstream>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <limits>
#include <string>
#include <vector>

#include "runtime/error.h"
#include "tests/support/files.h"

namespace cnn::bench {
namespace {

using testing::ElementsAre;

constexpr std::chrono::system_clock::time_point new_year =
    std::chrono::sys_days(std::chrono::year{2026} / 1 / 1);

RunDescription example() {
  RunDescription run;
  run.header = header_of(Config{});
  run.header.version = "0.1";
  run.header.model = "resnet50";
  run.header.global_batch = 64;
  run.header.length = {.batches = 100, .epochs = 0.5};
  run.header.devices = {"/cpu:0"};
  run.machine = {.host = "box", .cpu_name = "CPU", .processors = 4, .mhz = 2000};
  run.date = new_year;
  return run;
}

Json parameter(const Json& log, const std::string& name) {
  for (const Json& each : log["run_parameters"]) {
    if (each["name"] == name) {
      return each;
    }
  }
  return nullptr;
}

TEST(RunLog, DescribesTheRun) {
  const Json log = run_log(example());
  EXPECT_EQ(log["model_name"], "resnet50");
  EXPECT_EQ(log["dataset"]["name"], "imagenet");
  EXPECT_EQ(log["machine_config"]["cpu_info"]["num_cores"], 4);
  EXPECT_EQ(log["machine_config"]["cpu_info"]["cpu_info"], "CPU");
  EXPECT_EQ(log["run_date"], "2026-01-01T00:00:00.000000Z");
  EXPECT_TRUE(log["test_id"].is_null());
  EXPECT_EQ(log["tensorflow_version"]["version"], "cnn_benchmarks 0.1");
  EXPECT_TRUE(log["tensorflow_environment_variables"].empty());
}

TEST(RunLog, TypesItsParameters) {
  const Json log = run_log(example());
  EXPECT_EQ(parameter(log, "batch_size")["long_value"], 64);
  EXPECT_EQ(parameter(log, "num_epochs")["float_value"], 0.5);
  EXPECT_EQ(parameter(log, "single_sess")["bool_value"], "False");
  EXPECT_EQ(parameter(log, "devices")["string_value"], "['/cpu:0']");
  EXPECT_EQ(parameter(log, "dataset")["string_value"], "imagenet (synthetic)");
}

TEST(RunLog, SortsItsParametersByName) {
  std::vector<std::string> names;
  const Json log = run_log(example());
  for (const Json& each : log["run_parameters"]) {
    names.push_back(each["name"]);
  }
  EXPECT_EQ(names.size(), 13U);
  EXPECT_TRUE(std::ranges::is_sorted(names));
}

TEST(MetricLog, WritesOneObjectPerLine) {
  EXPECT_EQ(metric_line({"current_examples_per_sec", 42.5, 10}, new_year),
            R"({"name":"current_examples_per_sec","value":42.5,"unit":null,"global_step":10,)"
            R"("timestamp":"2026-01-01T00:00:00.000000Z","extras":[]})");
  const Json lost =
      Json::parse(metric_line({"x", std::numeric_limits<double>::quiet_NaN(), 1}, new_year));
  EXPECT_TRUE(lost["value"].is_null());
}

std::vector<std::string> names(const std::vector<Metric>& metrics) {
  std::vector<std::string> result;
  result.reserve(metrics.size());
  for (const Metric& metric : metrics) {
    result.push_back(metric.name);
  }
  return result;
}

TEST(MetricLog, NamesItsMetricsLikeTheOriginal) {
  EXPECT_THAT(names(step_metrics(10, 42, {})), ElementsAre("current_examples_per_sec"));
  EXPECT_THAT(names(step_metrics(10, 42, Accuracy{0.5, 1})),
              ElementsAre("current_examples_per_sec", "top_1_accuracy", "top_5_accuracy"));
  EXPECT_EQ(end_metric(100, 42).name, "average_examples_per_sec");
  EXPECT_EQ(end_metric(100, 42).global_step, 100);
  const std::vector<Metric> evaluation = eval_metrics(110, {0.25, 0.5}, 99);
  EXPECT_THAT(names(evaluation), ElementsAre("eval_top_1_accuracy", "eval_top_5_accuracy",
                                             "eval_average_examples_per_sec"));
  EXPECT_EQ(evaluation[1].value, 0.5);
  EXPECT_EQ(evaluation[2].global_step, 110);
}

TEST(LogFolder, IsMadeAndKeepsMetricsOfEarlierRuns) {
  const tests::TemporaryFolder root;
  const std::string folder = root / "deep";
  for (int run = 0; run < 2; ++run) {
    write_run_log(folder, example());
    append_metrics(folder, step_metrics(1, 42, Accuracy{}), new_year);
  }
  std::ifstream metrics(folder + "/metric.log");
  int lines = 0;
  for (std::string line; std::getline(metrics, line); ++lines) {
    EXPECT_TRUE(Json::accept(line));
  }
  EXPECT_EQ(lines, 6);
  std::ifstream description(folder + "/benchmark_run.log");
  EXPECT_EQ(Json::parse(description)["model_name"], "resnet50");
}

TEST(LogFolder, IsAnErrorIfItCannotBeMade) {
  EXPECT_THROW(write_run_log("/dev/null/logs", example()), Error);
  EXPECT_THROW(append_metrics("/nowhere/at/all", {{"x", 1, 1}}, new_year), Error);
}

}  // namespace
}  // namespace cnn::bench
