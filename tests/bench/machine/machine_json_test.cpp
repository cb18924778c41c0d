#include "bench/machine/machine_json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <string>
#include <vector>

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

TEST(MachineJson, DescribesTheProcessorAndItsLibraries) {
  Backend backend;
  backend.processors.threads = 2;
  backend.libraries = {{"oneDNN", "3.2"}};
  const Json json = machine_json({.host = "box"}, backend);
  EXPECT_THAT(keys(json), ElementsAre("cpu", "gpu", "memory_bytes", "host", "libraries"));
  EXPECT_EQ(json["libraries"]["oneDNN"], "3.2");
  EXPECT_EQ(json["cpu"]["cores_used"], 2);
  EXPECT_EQ(json["host"], "box");
  EXPECT_TRUE(json["gpu"].is_null());
}

TEST(MachineJson, DescribesTheGpuThatComputes) {
  Backend backend;
  backend.gpu = GpuInfo{.name = "NVIDIA H200", .driver = "13.0", .clock_mhz = 1980};
  const Json gpu = machine_json({}, backend)["gpu"];
  EXPECT_THAT(keys(gpu),
              ElementsAre("name", "driver", "compute_capability", "multiprocessors", "memory_bytes",
                          "clock_mhz", "memory_clock_mhz", "pci_bus_id"));
  EXPECT_EQ(gpu["name"], "NVIDIA H200");
  EXPECT_EQ(gpu["clock_mhz"], 1980);
}

TEST(TelemetryJson, HasWhatTheDeviceToldOfItself) {
  const Json json = telemetry_json(Telemetry{
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
      .images_per_joule = 14.5});
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

TEST(TelemetryJson, LeavesOutWhatTheDeviceDoesNotTell) {
  Telemetry telemetry{.facts = {.source = "NVML"}, .samples = 2, .seconds = 1};
  EXPECT_THAT(keys(telemetry_json(telemetry)), ElementsAre("source", "samples", "seconds"));
  telemetry.throttled.emplace();
  telemetry.joules = 3;
  const Json json = telemetry_json(telemetry);
  EXPECT_EQ(json["throttled"], Json::object());
  EXPECT_EQ(json["joules_from"], "power");
}

}  // namespace
}  // namespace cnn::bench
