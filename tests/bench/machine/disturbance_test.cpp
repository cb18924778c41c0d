#include "bench/machine/disturbance.h"

#include <array>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <vector>

namespace cnn::bench {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

// Returns the ticks of a core in a window; a tick is a hundredth of a second.
CoreTimes core(std::int64_t idle, std::int64_t steal, std::int64_t all) {
  return {.idle = idle, .steal = steal, .all = all};
}

// Judges one second on two cores.
Disturbance judged(double own_seconds, std::array<CoreTimes, 2> after) {
  const std::array<CoreTimes, 2> before{};
  return judge({.seconds = 1, .cpu_seconds = own_seconds, .before = before, .after = after});
}

TEST(Disturbance, IsNoneWhereWeUseAllThatIsNotIdle) {
  const Disturbance window = judged(1.5, {core(48, 0, 100), core(0, 0, 100)});
  EXPECT_FALSE(window.disturbed());
  EXPECT_NEAR(window.others_seconds.value(), 0.02, 1e-9);
  EXPECT_EQ(window.steal_seconds, 0);
  EXPECT_EQ(window.throttled, std::nullopt);
}

TEST(Disturbance, IsOthersWorkFromFivePerCentOfACoreOn) {
  EXPECT_THAT(judged(1.4, {core(50, 0, 100), core(0, 0, 100)}).causes.names(),
              ElementsAre("other processes"));
  EXPECT_THAT(judged(1.0, {core(0, 0, 100), core(50, 0, 100)}).causes.names(),
              ElementsAre("other processes"));
}

TEST(Disturbance, IsStealOfTheCoreThatLostMost) {
  const Disturbance window = judged(1.9, {core(0, 5, 100), core(0, 2, 100)});
  EXPECT_THAT(window.causes.names(), ElementsAre("steal"));
  EXPECT_DOUBLE_EQ(window.steal_seconds.value(), 0.05);
  EXPECT_THAT(judged(1.92, {core(0, 4, 100), core(0, 4, 100)}).causes.names(), IsEmpty());
}

TEST(Disturbance, IsNotSeenInAFewTicksOfAShortWindow) {
  const std::array<CoreTimes, 1> before{}, after{core(0, 1, 3)};
  const Disturbance window =
      judge({.seconds = 0.03, .cpu_seconds = 0.01, .before = before, .after = after});
  EXPECT_FALSE(window.disturbed());
}

TEST(Disturbance, IsUnknownWhereTheSystemCountsNothing) {
  const Disturbance zeros = judged(1, {CoreTimes{}, CoreTimes{}});
  EXPECT_FALSE(zeros.disturbed());
  EXPECT_EQ(zeros.steal_seconds, std::nullopt);
  EXPECT_EQ(zeros.others_seconds, std::nullopt);
  EXPECT_EQ(judge({.seconds = 1, .cpu_seconds = 0, .before = {}, .after = {}}).others_seconds,
            std::nullopt);
}

TEST(Disturbance, IsThrottlingIfTheCounterGrew) {
  CounterWindow window{.seconds = 1,
                       .cpu_seconds = 0,
                       .before = {},
                       .after = {},
                       .throttled_before = 7,
                       .throttled_after = 7};
  EXPECT_EQ(judge(window).throttled, false);
  window.throttled_after = 8;
  EXPECT_EQ(judge(window).throttled, true);
  EXPECT_THAT(judge(window).causes.names(), ElementsAre("throttling"));
}

TEST(UsualSwitches, AreNoneInAShortStepAndSomeInALongOne) {
  EXPECT_LT(usual_switches({0, 0, 0, 0, 0}, 0.001, 2), 1);
  EXPECT_GT(usual_switches({0, 0, 0, 0, 0}, 0.01, 2), 1);
  EXPECT_GT(usual_switches({}, 1, 2), 33);
  EXPECT_EQ(usual_switches({}, 0.01, 0), usual_switches({}, 0.01, 1));
}

TEST(UsualSwitches, AreThoseAmongTheProgramsOwnThreads) {
  const double usual = usual_switches({20, 21, 19, 22, 20, 300, 21, 20}, 0.001, 2);
  EXPECT_GT(usual, 30);
  EXPECT_LT(usual, 50);
}

TEST(UsualSwitches, LeaveStepsWithManyMoreAsDisturbed) {
  std::vector<Disturbance> steps(3);
  steps[0].involuntary_switches = 7;
  steps[1].involuntary_switches = 8;
  judge_switches(steps, 7.5);
  EXPECT_FALSE(steps[0].disturbed());
  EXPECT_THAT(steps[1].causes.names(), ElementsAre("involuntary switches"));
  EXPECT_FALSE(steps[2].disturbed());
}

TEST(DisturbanceLine, IsOnlyThereForMoreThanOneStepInTwenty) {
  std::vector<Disturbance> steps(20);
  EXPECT_EQ(disturbance_line(steps), std::nullopt);
  steps[3].involuntary_switches = 12;
  steps[3].causes.add(Cause::involuntary_switches);
  EXPECT_EQ(disturbance_line(steps), std::nullopt);
  steps[5].causes.add(Cause::throttling);
  steps[5].others_seconds = 0.25;
  steps[5].causes.add(Cause::others);
  EXPECT_EQ(count_disturbed(steps), 2);
  EXPECT_EQ(disturbance_line(steps),
            "disturbed: 2 of 20 timed steps: involuntary switches in 1 (12), other processes in 1 "
            "(0.25 s of our cores), throttling in 1; the figures may be too low");
  EXPECT_EQ(disturbance_line({}), std::nullopt);
}

}  // namespace
}  // namespace cnn::bench
