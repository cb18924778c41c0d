#include "bench/machine/telemetry_sampler.h"

#include <gtest/gtest.h>
#include <set>
#include <thread>

namespace cnn::bench {
namespace {

using std::chrono::milliseconds;

// Counts its readings without a lock, because readings must not overlap.
class Counting final : public TelemetrySource {
 public:
  TelemetryFacts facts() const override { return {.source = "counting"}; }
  Reading read() noexcept override {
    ++reads;
    threads.insert(std::this_thread::get_id());
    return {.clock_mhz = reads, .joules = 10.0 * reads};
  }

  int reads = 0;
  std::set<std::thread::id> threads;
};

TEST(TelemetrySampler, ReadsNothingBeforeStepsAreTimed) {
  Counting source;
  {
    const TelemetrySampler sampler(source, milliseconds(1));
    std::this_thread::sleep_for(milliseconds(10));
  }
  EXPECT_EQ(source.reads, 0);
}

TEST(TelemetrySampler, ReadsWhereAStretchBeginsAndWhereItEnds) {
  Counting source;
  TelemetrySampler sampler(source, milliseconds(100000));
  sampler.resume();
  const Telemetry telemetry = sampler.finish(50);
  EXPECT_EQ(telemetry.samples, 2);
  EXPECT_EQ(telemetry.joules, 10);
  EXPECT_EQ(telemetry.images_per_joule, 5);
  EXPECT_EQ(telemetry.facts.source, "counting");
}

TEST(TelemetrySampler, ReadsOnAnotherThreadInBetween) {
  Counting source;
  TelemetrySampler sampler(source, milliseconds(1));
  sampler.resume();
  std::this_thread::sleep_for(milliseconds(30));
  const Telemetry telemetry = sampler.finish(1);
  EXPECT_GT(telemetry.samples, 4);
  EXPECT_EQ(telemetry.samples, source.reads);
  EXPECT_EQ(source.threads.size(), 2U);
  EXPECT_GE(telemetry.seconds, 0.03);
  EXPECT_EQ(telemetry.clock_mhz->max, source.reads);
}

TEST(TelemetrySampler, ReadsNothingInAPause) {
  Counting source;
  TelemetrySampler sampler(source, milliseconds(1));
  sampler.resume();
  sampler.pause();
  const int before = source.reads;
  std::this_thread::sleep_for(milliseconds(200));
  EXPECT_EQ(source.reads, before);
  sampler.resume();
  const Telemetry telemetry = sampler.finish(1);
  EXPECT_LT(telemetry.seconds, 0.2);
  // The energy used in the pause does not count.
  EXPECT_DOUBLE_EQ(telemetry.joules.value(), 10.0 * (source.reads - 2));
}

// A source that is always throttled, for the reason of bit 2.
class Throttled final : public TelemetrySource {
 public:
  explicit Throttled(std::uint64_t disturbing) : disturbing_(disturbing) {}
  TelemetryFacts facts() const override {
    return {.source = "throttled", .disturbing = disturbing_};
  }
  Reading read() noexcept override { return {.throttled = 4}; }

 private:
  std::uint64_t disturbing_;
};

TEST(TelemetrySampler, CountsThrottlingThatDisturbsAlone) {
  const auto counted = [](std::uint64_t disturbing) {
    Throttled source(disturbing);
    TelemetrySampler sampler(source, milliseconds(100000));
    sampler.resume();
    sampler.pause();
    return sampler.throttled_samples();
  };
  EXPECT_EQ(counted(0xe8 | 4), 2U);
  EXPECT_EQ(counted(0xe8), 0U);
  EXPECT_EQ(counted(0), std::nullopt);
}

TEST(TelemetrySampler, TakesARepeatedWordOnce) {
  Counting source;
  TelemetrySampler sampler(source, milliseconds(100000));
  sampler.pause();
  sampler.resume();
  sampler.resume();
  sampler.pause();
  sampler.pause();
  EXPECT_EQ(source.reads, 2);
}

TEST(TelemetrySampler, ReadsNothingAfterTheEnd) {
  Counting source;
  TelemetrySampler sampler(source, milliseconds(1));
  sampler.resume();
  sampler.finish(1);
  const int before = source.reads;
  sampler.resume();
  std::this_thread::sleep_for(milliseconds(10));
  EXPECT_EQ(source.reads, before);
}

TEST(TelemetrySampler, StopsWhileItSamples) {
  Counting source;
  for (int i = 0; i < 50; ++i) {
    TelemetrySampler sampler(source, milliseconds(i % 2));
    sampler.resume();
  }
  EXPECT_GE(source.reads, 50);
}

}  // namespace
}  // namespace cnn::bench
