#include "bench/run/time_slicer.h"

#include <chrono>
#include <gtest/gtest.h>

#include "tests/support/files.h"

namespace cnn::bench {
namespace {

TEST(TimeSlicer, PassesTheTurnBeforeTimingAndBetweenSteps) {
  const tests::TemporaryFolder folder;
  SliceLock turns(folder / "turns", SliceLock::Clock::duration::zero());
  turns.begin();
  Json result;
  TimeSlicer taker(turns, result);
  taker.timing_starts();
  EXPECT_TRUE(taker.work_is_due({}));
  EXPECT_EQ(taker.work({}), Next::go_on);
  taker.end({});
  EXPECT_EQ(result["turns"]["passed"], 2);
}

TEST(TimeSlicer, KeepsATurnThatIsNotOver) {
  const tests::TemporaryFolder folder;
  SliceLock turns(folder / "turns", std::chrono::hours(1));
  turns.begin();
  Json result;
  TimeSlicer taker(turns, result);
  EXPECT_FALSE(taker.work_is_due({}));
  taker.timing_starts();
  EXPECT_EQ(turns.passed(), 1) << "the warm-up is a turn of its own";
}

TEST(TimeSlicer, FillsItsSectionOfARunThatFailed) {
  const tests::TemporaryFolder folder;
  SliceLock turns(folder / "turns");
  turns.begin();
  Json result;
  TimeSlicer taker(turns, result);
  taker.failed({}, "no room");
  EXPECT_EQ(result["turns"]["passed"], 0);
  EXPECT_GE(result["turns"]["seconds_waited"], 0);
}

}  // namespace
}  // namespace cnn::bench
