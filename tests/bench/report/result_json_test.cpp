#include "bench/report/result_json.h"

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

std::vector<std::string> keys(const Json& json) {
  std::vector<std::string> names;
  for (const auto& item : json.items()) {
    names.push_back(item.key());
  }
  return names;
}

ResultRecord example() {
  ResultRecord record{.version = "0.1"};
  record.command = {"cnn_benchmarks", "--model=lenet"};
  record.config.model = "lenet";
  record.config.undefok = {"a", "b"};
  ResultMachine& machine = record.machine.emplace();
  machine.info.host = "box";
  machine.cores_used = 2;
  machine.libraries = {{"oneDNN", "3.2"}};
  record.model = ResultModel{.name = "lenet5", .data_set = "imagenet", .trainable_tensors = 8};
  record.plan = ResultPlan{.layout = "nchw", .precision = "fp32", .arena_bytes = 100};
  record.start = ResultStart{.process_to_first_step = 1.5};
  record.steps = {{.step = 1, .seconds = 0.1, .loss = 7.25, .top_1 = 0.5, .top_5 = 1.0},
                  {.step = 2, .seconds = 0.2, .loss = 7.125}};
  record.warm_up_losses = {9, 8};
  record.summary = ResultSummary{.images_per_sec = 42};
  record.evaluation = {{.global_step = 12, .examples = 64, .top_1 = 0.25}};
  return record;
}

TEST(ResultJson, HasTheAgreedKeys) {
  const Json json = result_json(example());
  EXPECT_THAT(keys(json), ElementsAre("program", "version", "commit", "command", "started",
                                      "config", "machine", "model", "plan", "memory", "start",
                                      "steps", "warm_up_losses", "summary", "evaluation"));
  EXPECT_THAT(keys(json["machine"]),
              ElementsAre("cpu", "gpu", "memory_bytes", "host", "libraries"));
  EXPECT_THAT(keys(json["model"]),
              ElementsAre("name", "data_set", "image_size", "classes", "trainable_parameters",
                          "trainable_tensors", "forward_macs"));
  EXPECT_THAT(keys(json["plan"]),
              ElementsAre("layout", "precision", "arena_bytes", "lower_bound_bytes", "host_bytes",
                          "workspace_bytes", "predicted_step_seconds", "lms"));
  EXPECT_THAT(keys(json["summary"]),
              ElementsAre("images_per_sec", "uncertainty", "jitter", "total_images_per_sec",
                          "median_step_seconds", "percent_of_roofline"));
  EXPECT_THAT(keys(json["evaluation"][0]), ElementsAre("global_step", "examples", "top_1", "top_5",
                                                       "base_loss", "images_per_sec"));
}

TEST(ResultJson, TellsASimulationFromARun) {
  ResultRecord record = example();
  EXPECT_FALSE(result_json(record).contains("simulation"));
  record.simulation = ResultSimulation{.machine = "H200",
                                       .images_per_sec = 9000,
                                       .largest_batch = 12,
                                       .by_op = {{.op = "conv2d", .nodes = 3, .seconds = 0.5}}};
  const Json json = result_json(record)["simulation"];
  EXPECT_EQ(json["machine"], "H200");
  EXPECT_EQ(json["images_per_sec"], 9000.0);
  EXPECT_EQ(json["largest_batch"], 12);
  EXPECT_EQ(json["by_op"][0]["op"], "conv2d");
  EXPECT_EQ(json["by_op"][0]["nodes"], 3);
}

TEST(ResultJson, HoldsTheNumbers) {
  const Json json = result_json(example());
  EXPECT_EQ(json["machine"]["libraries"]["oneDNN"], "3.2");
  EXPECT_EQ(json["machine"]["cpu"]["cores_used"], 2);
  EXPECT_EQ(json["steps"][0]["loss"], 7.25);
  EXPECT_EQ(json["steps"][0]["top_1"], 0.5);
  EXPECT_FALSE(json["steps"][1].contains("top_1"));
  EXPECT_EQ(json["warm_up_losses"], Json::array({9.0, 8.0}));
  EXPECT_TRUE(json["commit"].is_null());
  EXPECT_TRUE(json["plan"]["lms"].is_null());
  EXPECT_EQ(json["command"], Json::array({"cnn_benchmarks", "--model=lenet"}));
}

TEST(ResultJson, DescribesTheGpuThatComputes) {
  ResultRecord record = example();
  EXPECT_TRUE(result_json(record)["machine"]["gpu"].is_null());
  record.machine->gpu = GpuInfo{.name = "NVIDIA H200", .driver = "13.0", .clock_mhz = 1980};
  const Json gpu = result_json(record)["machine"]["gpu"];
  EXPECT_THAT(keys(gpu), ElementsAre("name", "driver", "compute_capability", "multiprocessors",
                                     "memory_bytes", "clock_mhz", "memory_clock_mhz"));
  EXPECT_EQ(gpu["name"], "NVIDIA H200");
  EXPECT_EQ(gpu["clock_mhz"], 1980);
}

TEST(ResultJson, HasWhatTheDeviceToldOfItself) {
  ResultRecord record = example();
  EXPECT_FALSE(result_json(record).contains("telemetry"));
  record.telemetry = Telemetry{
      .facts = {.source = "NVML", .highest_clock_mhz = 1980, .power_limit_watts = 700},
      .samples = 50,
      .seconds = 5,
      .clock_mhz = Range{.min = 1200, .mean = 1755, .max = 1980},
      .memory_clock_mhz = Range{.min = 2619, .mean = 2619, .max = 2619},
      .watts = Range{.min = 100, .mean = 412, .max = 500},
      .celsius = Range{.min = 40, .mean = 55, .max = 61},
      .memory_bytes = Range{.min = 1, .mean = 2, .max = 3},
      .throttled = std::vector<Telemetry::Throttle>{{.reason = "power cap", .share = 0.125}},
      .joules = 2000,
      .joules_counted = true,
      .images_per_joule = 14.5};
  const Json json = result_json(record)["telemetry"];
  EXPECT_THAT(keys(json), ElementsAre("source", "samples", "seconds", "clock_mhz",
                                      "highest_clock_mhz", "memory_clock_mhz", "watts",
                                      "power_limit_watts", "celsius", "memory_bytes", "throttled",
                                      "joules", "joules_from", "images_per_joule"));
  EXPECT_EQ(json["source"], "NVML");
  EXPECT_EQ(json["clock_mhz"], Json({{"min", 1200.0}, {"mean", 1755.0}, {"max", 1980.0}}));
  EXPECT_EQ(json["throttled"], Json({{"power cap", 0.125}}));
  EXPECT_EQ(json["joules_from"], "counter");
  EXPECT_EQ(json["images_per_joule"], 14.5);
}

TEST(ResultJson, LeavesOutWhatTheDeviceDoesNotTell) {
  ResultRecord record = example();
  record.telemetry = Telemetry{.facts = {.source = "NVML"}, .samples = 2, .seconds = 1};
  EXPECT_THAT(keys(result_json(record)["telemetry"]), ElementsAre("source", "samples", "seconds"));
  record.telemetry->throttled.emplace();
  record.telemetry->joules = 3;
  const Json json = result_json(record)["telemetry"];
  EXPECT_EQ(json["throttled"], Json::object());
  EXPECT_EQ(json["joules_from"], "power");
}

TEST(ResultJson, EchoesEveryFlagWithItsValue) {
  const Json config = result_json(example())["config"];
  EXPECT_EQ(config.size(), 180U);
  EXPECT_EQ(config["model"], "lenet");
  EXPECT_EQ(config["eval"], false);
  EXPECT_EQ(config["display_every"], 10);
  EXPECT_EQ(config["weight_decay"], 4e-5);
  EXPECT_TRUE(config["num_batches"].is_null());
  EXPECT_EQ(config["undefok"], Json::array({"a", "b"}));
  EXPECT_FALSE(config.contains("learning_rate"));
}

TEST(ResultJson, IsValidForARunThatFailedEarly) {
  ResultRecord record{.version = "0.1"};
  record.error = "no such \"model\"\n";
  const Json json = Json::parse(result_json(record).dump());
  EXPECT_EQ(json["error"], "no such \"model\"\n");
  EXPECT_TRUE(json["summary"].is_null());
  EXPECT_TRUE(json["model"].is_null());
  EXPECT_TRUE(json["steps"].empty());
  EXPECT_TRUE(json["steps"].is_array());
}

TEST(ResultJson, WritesNumbersThatJsonLacksAsNull) {
  ResultRecord record = example();
  record.steps[0].loss = std::numeric_limits<double>::quiet_NaN();
  record.steps[1].loss = std::numeric_limits<double>::infinity();
  record.warm_up_losses = {-std::numeric_limits<double>::infinity()};
  const Json json = Json::parse(result_json(record).dump());
  EXPECT_TRUE(json["steps"][0]["loss"].is_null());
  EXPECT_TRUE(json["steps"][1]["loss"].is_null());
  EXPECT_TRUE(json["warm_up_losses"][0].is_null());
}

TEST(ResultJson, KeepsFullPrecision) {
  ResultRecord record = example();
  record.steps[0].seconds = 0.1 + 0.2;
  EXPECT_EQ(Json::parse(result_json(record).dump())["steps"][0]["seconds"], 0.1 + 0.2);
}

TEST(ResultFile, IsReplacedAsAWhole) {
  const tests::TemporaryFolder folder;
  const std::string path = folder.write("result.json", "something older and longer than nothing");
  ResultRecord record = example();
  record.command.emplace_back("--train_dir=\xff");  // not UTF-8
  write_result(path, record);
  std::ifstream file(path);
  EXPECT_EQ(Json::parse(file)["version"], "0.1");
  EXPECT_THAT(folder.names(), testing::ElementsAre("result.json"));  // no temporary stays
}

TEST(ResultFile, ThatCannotBeWrittenIsAnError) {
  EXPECT_THROW(write_result("/nowhere/at/all.json", example()), Error);
}

TEST(UtcText, HasMicroseconds) {
  using namespace std::chrono;
  EXPECT_EQ(utc_text(sys_days(year{2026} / 1 / 31) + hours(12) + microseconds(1500)),
            "2026-01-31T12:00:00.001500Z");
  EXPECT_EQ(utc_text({}), "1970-01-01T00:00:00.000000Z");
}

}  // namespace
}  // namespace cnn::bench
