#include "bench/report/telemetry_record.h"

#include <gtest/gtest.h>

namespace cnn::bench {
namespace {

// Counts its readings. Each interval uses 100 J, and every reading is too hot.
class CountingTelemetry final : public TelemetrySource {
 public:
  TelemetryFacts facts() const override {
    return {.source = "a counter", .throttle_names = {"heat"}, .disturbing = 1};
  }
  Reading read() noexcept override {
    ++reads_;
    return {.throttled = 1, .joules = 100.0 * reads_};
  }
  int reads() const { return reads_; }

 private:
  int reads_ = 0;
};

TEST(TelemetryRecord, ReadsNothingBeforeTheFirstTimedStep) {
  CountingTelemetry source;
  Console console;
  Json result;
  TelemetryRecord record(source, console, result);
  record.start({.global_batch = 8});
  record.pause();
  record.resume();
  testing::internal::CaptureStderr();
  record.end({.timed_steps = 0});
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  EXPECT_EQ(source.reads(), 0);
  EXPECT_FALSE(record.throttled_samples());
  EXPECT_FALSE(result.contains("telemetry"));
}

TEST(TelemetryRecord, DividesTheImagesOfAllDevicesByTheEnergy) {
  CountingTelemetry source;
  Console console;
  Json result;
  TelemetryRecord record(source, console, result);
  record.start({.global_batch = 8});
  record.timing_starts();
  testing::internal::CaptureStderr();
  record.end({.timed_steps = 5});
  EXPECT_EQ(testing::internal::GetCapturedStderr().rfind("telemetry: ", 0), 0U);
  const Json& telemetry = result["telemetry"];
  const double joules = telemetry["joules"];
  EXPECT_GE(joules, 100);
  EXPECT_EQ(telemetry["images_per_joule"], 5 * 8 / joules);
}

TEST(TelemetryRecord, ReadsAtBothEndsOfAPause) {
  CountingTelemetry source;
  Console console;
  Json result;
  TelemetryRecord record(source, console, result);
  record.start({.global_batch = 8});
  record.timing_starts();
  record.pause();
  const int at_pause = source.reads();
  EXPECT_GE(at_pause, 2);
  record.resume();
  EXPECT_GT(source.reads(), at_pause);
  EXPECT_GT(record.throttled_samples().value(), 0U);
  testing::internal::CaptureStderr();
  record.end({.timed_steps = 1});
  testing::internal::GetCapturedStderr();
  const Json& telemetry = result["telemetry"];
  // Each of the two stretches has one reading more than intervals of 100 J.
  EXPECT_EQ(telemetry["joules"], 100 * (telemetry["samples"].get<double>() - 2));
}

}  // namespace
}  // namespace cnn::bench
