#include "bench/machine/disturbance_watch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <string>
#include <thread>

#include "tests/support/files.h"

namespace cnn::bench {
namespace {

using std::chrono::milliseconds;
using testing::Contains;

// Fake /proc and /sys of a machine with one processor.
class Machine {
 public:
  void stat(int idle, int steal, int busy) const {
    root_.write("proc/stat", "cpu0 " + std::to_string(busy) + " 0 0 " + std::to_string(idle) +
                                 " 0 0 0 " + std::to_string(steal) + " 0 0\n");
  }
  SystemCounters counters() const { return SystemCounters({0}, root_.path()); }

 private:
  tests::TemporaryFolder root_;
};

TEST(DisturbanceWatch, HasARecordOfEachStep) {
  const Machine machine;
  DisturbanceWatch watch(machine.counters(), 3);
  watch.resume();
  watch.add_step(0.001);
  watch.add_step(0.001);
  watch.pause();
  watch.resume();
  watch.add_step(0.001);
  const std::vector<Disturbance>& steps = watch.finish();
  ASSERT_EQ(steps.size(), 3U);
  EXPECT_EQ(steps[0].steal_seconds, std::nullopt);
  EXPECT_EQ(steps[0].throttled, std::nullopt);
}

TEST(DisturbanceWatch, SharesWhatAWindowLostAmongItsSteps) {
  const Machine machine;
  machine.stat(0, 0, 0);
  DisturbanceWatch watch(machine.counters(), 2);
  watch.resume();
  std::this_thread::sleep_for(milliseconds(100));
  watch.add_step(0.025);
  watch.add_step(0.05);
  machine.stat(0, 10, 2);
  const std::vector<Disturbance>& steps = watch.finish();
  ASSERT_EQ(steps.size(), 2U);
  EXPECT_THAT(steps[0].causes.names(), Contains("steal"));
  EXPECT_THAT(steps[1].causes.names(), Contains("steal"));
  EXPECT_LE(steps[0].steal_seconds.value(), 0.025);
  EXPECT_GT(steps[0].steal_seconds.value(), 0);
  EXPECT_DOUBLE_EQ(steps[1].steal_seconds.value(), 2 * steps[0].steal_seconds.value());
}

TEST(DisturbanceWatch, LooksAwayWhileNothingIsTimed) {
  const Machine machine;
  machine.stat(0, 0, 0);
  DisturbanceWatch watch(machine.counters(), 1);
  watch.resume();
  watch.add_step(0.001);
  watch.pause();
  machine.stat(0, 100, 100);
  watch.resume();
  const std::vector<Disturbance>& steps = watch.finish();
  EXPECT_FALSE(steps.at(0).causes.has(Cause::steal));
}

TEST(DisturbanceWatch, EndsAWindowAfterHalfASecond) {
  const Machine machine;
  machine.stat(0, 0, 0);
  DisturbanceWatch watch(machine.counters(), 2);
  watch.resume();
  std::this_thread::sleep_for(milliseconds(510));
  machine.stat(0, 40, 20);
  watch.add_step(0.5);
  watch.add_step(0.001);
  const std::vector<Disturbance>& steps = watch.finish();
  EXPECT_TRUE(steps.at(0).causes.has(Cause::steal));
  EXPECT_FALSE(steps.at(1).causes.has(Cause::steal));
}

TEST(DisturbanceWatch, HearsOfADeviceThatIsThrottled) {
  const Machine machine;
  std::uint64_t seen = 0;
  DisturbanceWatch watch(machine.counters(), 1, [&seen] { return std::optional(seen); });
  watch.resume();
  watch.add_step(0.001);
  seen = 4;
  EXPECT_EQ(watch.finish().at(0).throttled, true);
}

}  // namespace
}  // namespace cnn::bench
