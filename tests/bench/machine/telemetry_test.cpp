#include "bench/machine/telemetry.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace cnn::bench {
namespace {

const TelemetryFacts named{.source = "test", .throttle_names = {"", "", "power cap", "heat"}};

void expect_range(const std::optional<Range>& range, double min, double mean, double max) {
  ASSERT_TRUE(range.has_value());
  EXPECT_DOUBLE_EQ(range->min, min);
  EXPECT_DOUBLE_EQ(range->mean, mean);
  EXPECT_DOUBLE_EQ(range->max, max);
}

TEST(TelemetryTotals, KeepTheLeastTheMeanAndTheMost) {
  TelemetryTotals totals;
  totals.begin({.clock_mhz = 1000, .celsius = -5}, 0);
  totals.add({.clock_mhz = 1900, .celsius = -2}, 1);
  totals.add({.clock_mhz = 1300, .celsius = -8}, 2);
  const Telemetry telemetry = totals.summary(named, 1);
  EXPECT_EQ(telemetry.samples, 3);
  EXPECT_EQ(telemetry.seconds, 2);
  expect_range(telemetry.clock_mhz, 1000, 1400, 1900);
  expect_range(telemetry.celsius, -8, -5, -2);
}

TEST(TelemetryTotals, TakeAMissingValueForMissingAndNotForNothing) {
  TelemetryTotals totals;
  totals.begin({.memory_clock_mhz = 10}, 0);
  totals.add({}, 1);
  totals.add({.memory_clock_mhz = 30}, 2);
  const Telemetry telemetry = totals.summary(named, 1);
  expect_range(telemetry.memory_clock_mhz, 10, 20, 30);
  EXPECT_FALSE(telemetry.clock_mhz || telemetry.watts || telemetry.celsius);
  EXPECT_FALSE(telemetry.memory_bytes || telemetry.throttled);
  EXPECT_FALSE(telemetry.joules || telemetry.images_per_joule);
}

TEST(TelemetryTotals, DivideImagesByWhatTheCounterCounted) {
  TelemetryTotals totals;
  totals.begin({.watts = 999, .joules = 5000}, 10);
  totals.add({.watts = 999, .joules = 5100}, 10.5);
  totals.add({.watts = 999, .joules = 5400}, 11);
  const Telemetry telemetry = totals.summary(named, 6000);
  EXPECT_EQ(telemetry.joules, 400);
  EXPECT_TRUE(telemetry.joules_counted);
  EXPECT_EQ(telemetry.images_per_joule, 15);
}

TEST(TelemetryTotals, IntegratePowerWhereNothingIsCounted) {
  TelemetryTotals totals;
  totals.begin({.watts = 100}, 0);
  totals.add({.watts = 300}, 2);  // 200 W on average, so 400 J
  totals.add({.watts = 300}, 3);  // 300 J
  const Telemetry telemetry = totals.summary(named, 1400);
  EXPECT_EQ(telemetry.joules, 700);
  EXPECT_FALSE(telemetry.joules_counted);
  EXPECT_EQ(telemetry.images_per_joule, 2);
}

TEST(TelemetryTotals, LeaveOutWhatIsUsedBetweenStretches) {
  TelemetryTotals totals;
  totals.begin({.watts = 100, .joules = 0}, 0);
  totals.add({.watts = 100, .joules = 100}, 1);
  totals.begin({.watts = 100, .joules = 9000}, 60);
  totals.add({.watts = 100, .joules = 9200}, 62);
  const Telemetry telemetry = totals.summary(named, 600);
  EXPECT_EQ(telemetry.joules, 300);
  EXPECT_EQ(telemetry.seconds, 3);
  EXPECT_EQ(telemetry.images_per_joule, 2);
}

TEST(TelemetryTotals, IntegratePowerWhereTheCounterFailedOnce) {
  TelemetryTotals totals;
  totals.begin({.watts = 50, .joules = 0}, 0);
  totals.add({.watts = 50}, 1);
  totals.add({.watts = 50, .joules = 70}, 2);
  EXPECT_EQ(totals.summary(named, 1).joules, 100);
}

TEST(TelemetryTotals, DistrustACounterThatGoesBackOrStandsStill) {
  TelemetryTotals back;
  back.begin({.watts = 50, .joules = 100}, 0);
  back.add({.watts = 50, .joules = 20}, 1);
  back.add({.watts = 50, .joules = 80}, 2);
  EXPECT_EQ(back.summary(named, 1).joules, 100);
  TelemetryTotals still;
  still.begin({.watts = 50, .joules = 100}, 0);
  still.add({.watts = 50, .joules = 100}, 1);
  EXPECT_EQ(still.summary(named, 1).joules, 50);
}

TEST(TelemetryTotals, TellNoEnergyWhereBothWaysHaveGaps) {
  TelemetryTotals totals;
  totals.begin({.watts = 50, .joules = 100}, 0);
  totals.add({}, 1);
  totals.add({.watts = 50, .joules = 200}, 2);
  EXPECT_FALSE(totals.summary(named, 1).joules);
}

TEST(TelemetryTotals, TellTheShareOfSamplesWithEachReason) {
  TelemetryTotals totals;
  totals.begin({.throttled = 0}, 0);
  totals.add({.throttled = 0b0100}, 1);
  totals.add({.throttled = 0b1100}, 2);
  totals.add({.throttled = std::uint64_t{1} << 63}, 3);
  totals.add({}, 4);  // a reading without throttle reasons
  const Telemetry telemetry = totals.summary(named, 1);
  ASSERT_EQ(telemetry.throttled->size(), 3U);
  EXPECT_EQ(telemetry.throttled->at(0).reason, "power cap");
  EXPECT_EQ(telemetry.throttled->at(0).share, 0.5);
  EXPECT_EQ(telemetry.throttled->at(1).reason, "heat");
  EXPECT_EQ(telemetry.throttled->at(1).share, 0.25);
  EXPECT_EQ(telemetry.throttled->at(2).reason, "reason 0x8000000000000000");
  EXPECT_EQ(telemetry.throttled->at(2).share, 0.25);
}

TEST(TelemetryTotals, NameAReasonWithoutANameByItsBit) {
  TelemetryTotals totals;
  totals.begin({.throttled = 0b10}, 0);
  EXPECT_EQ(totals.summary(named, 1).throttled->at(0).reason, "reason 0x2");
}

TEST(TelemetryLine, SaysHowTheDeviceFared) {
  const Telemetry telemetry{
      .facts = {.source = "NVML", .highest_clock_mhz = 1980},
      .seconds = 10,
      .clock_mhz = Range{.min = 1200, .mean = 1755.4, .max = 1900},
      .watts = Range{.min = 100, .mean = 380, .max = 500},
      .celsius = Range{.min = 40, .mean = 55, .max = 61},
      .throttled = std::vector<Telemetry::Throttle>{{.reason = "power cap", .share = 0.12}},
      .joules = 4120,
      .images_per_joule = 14.91};
  EXPECT_EQ(telemetry_line(telemetry),
            "telemetry: 412 W mean, 1755 MHz (1980 max), 61 C, 14.9 images per joule; throttled by "
            "power cap in 12.0 % of samples");
}

TEST(TelemetryLine, ListsEveryReason) {
  const Telemetry telemetry{
      .watts = Range{.min = 1, .mean = 300, .max = 500},
      .throttled = std::vector<Telemetry::Throttle>{{.reason = "power cap", .share = 1},
                                                    {.reason = "heat", .share = 0.005}}};
  EXPECT_EQ(telemetry_line(telemetry),
            "telemetry: 300 W mean; throttled by power cap in 100.0 %, by heat in 0.5 % of "
            "samples");
}

TEST(TelemetryLine, LeavesOutWhatIsUnknown) {
  EXPECT_EQ(telemetry_line({.facts = {.source = "NVML"}}), "telemetry: NVML tells nothing");
  EXPECT_EQ(telemetry_line({.seconds = 2, .joules = 100, .images_per_joule = 0.0625}),
            "telemetry: 50 W mean, 0.0625 images per joule");
  EXPECT_EQ(telemetry_line({.clock_mhz = Range{.min = 1, .mean = 2, .max = 3},
                            .throttled = std::vector<Telemetry::Throttle>{}}),
            "telemetry: 2 MHz; not throttled");
}

}  // namespace
}  // namespace cnn::bench
