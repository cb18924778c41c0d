#include "bench/cuda/nvml.h"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <memory>
#include <string>
#include <thread>

#include "bench/machine/telemetry_sampler.h"
#include "runtime/error.h"
#include "tests/bench/cuda/fake_nvml/script.h"

namespace cnn::bench {
namespace {

using fake_nvml::Script;

constexpr int not_supported = 3;
const GpuAddress address{.pci_bus_id = "0000:1b:00.0", .uuid = "8b5e06c6"};

// Gives access to a fake library's script and keeps the library loaded.
class Fake {
 public:
  explicit Fake(const char* file) : file_(file), handle_(dlopen(file, RTLD_NOW), close) {
    auto* const find = reinterpret_cast<fake_nvml::FindScript*>(dlsym(handle_.get(), "script"));
    script_ = find();
    *script_ = {.sm_mhz = 1755,
                .memory_mhz = 2619,
                .highest_sm_mhz = 1980,
                .celsius = 61,
                .milliwatts = 412500,
                .limit_milliwatts = 700000,
                .millijoules = 1234567,
                .used_bytes = 40,
                .reason_bits = 0x4,
                .bus_id = "0000:1b:00.0",
                .uuid = "GPU-8b5e06c6"};
  }

  Script* operator->() const { return script_; }
  std::unique_ptr<TelemetrySource> open() const { return open_nvml(address, file_); }

  std::string driver() const { return driver_release(file_); }

  std::string error() const {
    try {
      open();
    } catch (const Error& error) {
      return error.what();
    }
    return "none";
  }

 private:
  static void close(void* handle) { dlclose(handle); }

  std::string file_;
  std::unique_ptr<void, void (*)(void*)> handle_;
  Script* script_ = nullptr;
};

TEST(Nvml, TellsWhatTheDeviceTellsInWattsJoulesAndBytes) {
  const Fake fake(CNN_NEW_NVML);
  const std::unique_ptr<TelemetrySource> source = fake.open();
  const Reading reading = source->read();
  EXPECT_EQ(reading.clock_mhz, 1755);
  EXPECT_EQ(reading.memory_clock_mhz, 2619);
  EXPECT_DOUBLE_EQ(reading.watts.value(), 412.5);
  EXPECT_EQ(reading.celsius, 61);
  EXPECT_EQ(reading.memory_bytes, 40);
  EXPECT_EQ(reading.throttled, 0x4U);
  EXPECT_DOUBLE_EQ(reading.joules.value(), 1234.567);
  const TelemetryFacts facts = source->facts();
  EXPECT_EQ(facts.source, "NVML of driver 580.65.06");
  EXPECT_EQ(fake.driver(), "580.65.06");
  EXPECT_EQ(facts.highest_clock_mhz, 1980);
  EXPECT_DOUBLE_EQ(facts.power_limit_watts.value(), 700);
}

TEST(Nvml, ReadsAnewEachTime) {
  const Fake fake(CNN_NEW_NVML);
  const std::unique_ptr<TelemetrySource> source = fake.open();
  EXPECT_EQ(source->read().clock_mhz, 1755);
  fake->sm_mhz = 1200;
  EXPECT_EQ(source->read().clock_mhz, 1200);
}

TEST(Nvml, NamesTheReasonsThatHoldClocksDown) {
  const Fake fake(CNN_NEW_NVML);
  const std::unique_ptr<TelemetrySource> source = fake.open();
  const std::vector<std::string> names = source->facts().throttle_names;
  ASSERT_EQ(names.size(), 9U);
  EXPECT_EQ(names[1], "application clocks");
  EXPECT_EQ(names[2], "power cap");
  EXPECT_EQ(names[3], "hardware slowdown");
  EXPECT_EQ(names[4], "sync boost");
  EXPECT_EQ(names[5], "thermal slowdown");
  EXPECT_EQ(names[6], "hardware thermal slowdown");
  EXPECT_EQ(names[7], "power brake");
  EXPECT_EQ(names[8], "display clocks");
}

TEST(Nvml, CountsIdlenessAsNoThrottling) {
  const Fake fake(CNN_NEW_NVML);
  fake->reason_bits = 0x1 | 0x20;
  EXPECT_EQ(fake.open()->read().throttled, 0x20U);
}

TEST(Nvml, LeavesOutUnknownValuesWithAnOldDriver) {
  const Fake fake(CNN_OLD_NVML);
  const std::unique_ptr<TelemetrySource> source = fake.open();
  const Reading reading = source->read();
  EXPECT_EQ(reading.joules, std::nullopt);
  EXPECT_EQ(source->facts().power_limit_watts, std::nullopt);
  EXPECT_EQ(source->facts().source, "NVML");
  EXPECT_EQ(fake.driver(), "");
  EXPECT_EQ(reading.throttled, 0x4U);  // read through the function's older name
  EXPECT_DOUBLE_EQ(reading.watts.value(), 412.5);
}

TEST(Nvml, LeavesOutWhatTheDeviceRefuses) {
  const Fake fake(CNN_NEW_NVML);
  fake->clocks = fake->temperature = fake->power = fake->energy = not_supported;
  fake->memory = fake->reasons = not_supported;
  const std::unique_ptr<TelemetrySource> source = fake.open();
  const Reading reading = source->read();
  EXPECT_EQ(reading.clock_mhz, std::nullopt);
  EXPECT_EQ(reading.memory_clock_mhz, std::nullopt);
  EXPECT_EQ(reading.watts, std::nullopt);
  EXPECT_EQ(reading.celsius, std::nullopt);
  EXPECT_EQ(reading.memory_bytes, std::nullopt);
  EXPECT_EQ(reading.throttled, std::nullopt);
  EXPECT_EQ(reading.joules, std::nullopt);
  EXPECT_EQ(source->facts().highest_clock_mhz, std::nullopt);
}

TEST(Nvml, FindsTheDeviceByItsPlaceOnTheBus) {
  const Fake fake(CNN_NEW_NVML);
  fake.open();
  EXPECT_EQ(fake->found_by, "0000:1b:00.0");
}

TEST(Nvml, FindsTheDeviceByItsUuidWhereItsPlaceIsUnknown) {
  const Fake fake(CNN_NEW_NVML);
  fake->bus_id = "0000:99:00.0";
  fake.open();
  EXPECT_EQ(fake->found_by, "GPU-8b5e06c6");
}

TEST(Nvml, AsksTheInstanceOfADividedDevice) {
  const Fake fake(CNN_NEW_NVML);
  fake->mig_mode = 1;
  fake->instance_uuid = "MIG-8b5e06c6";
  fake.open();
  EXPECT_EQ(fake->found_by, "MIG-8b5e06c6");
}

TEST(Nvml, TellsNothingRatherThanThatOfAWholeDividedDevice) {
  const Fake fake(CNN_NEW_NVML);
  fake->mig_mode = 1;
  EXPECT_EQ(fake.error(),
            "NVML does not find the device at 0000:1b:00.0 (UUID 8b5e06c6): Not Found");
}

TEST(Nvml, TakesADeviceThatKnowsNoDivisionAsWhole) {
  const Fake fake(CNN_NEW_NVML);
  fake->mig = not_supported;
  fake->mig_mode = 1;
  fake.open();
  EXPECT_EQ(fake->found_by, "0000:1b:00.0");
}

TEST(Nvml, IsStoppedAsOftenAsItIsStarted) {
  const Fake fake(CNN_NEW_NVML);
  fake.open();
  EXPECT_EQ(fake->starts, 1);
  EXPECT_EQ(fake->stops, 1);
  fake->bus_id = fake->uuid = "another";
  EXPECT_NE(fake.error(), "none");
  EXPECT_EQ(fake->starts, 2);
  EXPECT_EQ(fake->stops, 2);
}

TEST(Nvml, SaysWhyItDoesNotStart) {
  const Fake fake(CNN_NEW_NVML);
  fake->init = 9;
  EXPECT_EQ(fake.error(), "NVML does not start: Driver Not Loaded");
  EXPECT_EQ(fake->stops, 0);
}

TEST(Nvml, IsNamedIfItIsMissing) {
  try {
    open_nvml(address, "libnvidia-none.so.1");
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_TRUE(std::string(error.what()).starts_with("libnvidia-none.so.1: cannot open"))
        << error.what();
  }
}

TEST(Nvml, IsNotMistakenForAnotherLibrary) {
  try {
    open_nvml(address, "libm.so.6");
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "libm.so.6 is no NVML: it lacks nvmlInit_v2");
  }
}

TEST(Nvml, IsSampledWhileStepsRun) {
  const Fake fake(CNN_NEW_NVML);
  const std::unique_ptr<TelemetrySource> source = fake.open();
  TelemetrySampler sampler(*source, std::chrono::milliseconds(1));
  fake->millijoules = 1000;
  sampler.resume();
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  sampler.pause();  // the sampler reads nothing more, so the script may change
  fake->millijoules = 9000;
  sampler.resume();
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  const Telemetry telemetry = sampler.finish(100);
  EXPECT_GE(telemetry.samples, 6);
  EXPECT_EQ(telemetry.clock_mhz->min, 1755);
  EXPECT_EQ(telemetry.clock_mhz->max, 1755);
  EXPECT_DOUBLE_EQ(telemetry.watts->mean, 412.5);
  ASSERT_EQ(telemetry.throttled->size(), 1U);
  EXPECT_EQ(telemetry.throttled->front().reason, "power cap");
  EXPECT_EQ(telemetry.throttled->front().share, 1);
  EXPECT_FALSE(telemetry.joules_counted);  // the counter did not advance while steps ran
  EXPECT_NEAR(telemetry.joules.value(), 412.5 * telemetry.seconds, 1e-6);
}

}  // namespace
}  // namespace cnn::bench
