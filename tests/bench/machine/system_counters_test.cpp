#include "bench/machine/system_counters.h"

#include <array>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <string>
#include <thread>

#include "tests/support/files.h"

namespace cnn::bench {
namespace {

using testing::ElementsAre;

constexpr std::string_view stat =
    "cpu  217865 66566 35588 90490 1858 0 286 4082 0 0\n"
    "cpu0 108269 33655 17290 47079 157 0 11 1928 0 0\n"
    "cpu1 109595 32910 18297 43410 1700 0 274 2153 0 0\n"
    "cpu10 1 2 3 4 5 6 7 8 9 10\n"
    "intr 998813 0 0 0\n"
    "ctxt 5\n";

TEST(CoreTimes, AreThoseOfTheProcessorsAskedForInTheirOrder) {
  std::array<CoreTimes, 2> times;
  ASSERT_TRUE(parse_core_times(stat, std::array{10, 0}, times));
  EXPECT_EQ(times[0].idle, 4 + 5);
  EXPECT_EQ(times[0].steal, 8);
  EXPECT_EQ(times[0].all, 1 + 2 + 3 + 4 + 5 + 6 + 7 + 8);  // user time already includes guest time
  EXPECT_EQ(times[1].idle, 47079 + 157);
  EXPECT_EQ(times[1].steal, 1928);
}

TEST(CoreTimes, AreUnknownIfAProcessorIsMissingOrALineIsCut) {
  std::array<CoreTimes, 2> times;
  EXPECT_FALSE(parse_core_times(stat, std::array{0, 2}, times));
  EXPECT_FALSE(parse_core_times("cpu0 108269 33655 17290", std::array{0}, times));
  EXPECT_FALSE(parse_core_times("", std::array{0}, times));
  EXPECT_FALSE(parse_core_times(stat, {}, {}));
}

TEST(ThrottledPeriods, AreReadOfBothVersionsOfGroups) {
  EXPECT_EQ(parse_throttled_periods("usage_usec 9\nuser_usec 8\nnr_periods 120\nnr_throttled 17\n"
                                    "throttled_usec 88\n"),
            17U);
  EXPECT_EQ(parse_throttled_periods("nr_periods 0\nnr_throttled 3\nthrottled_time 0\n"), 3U);
  EXPECT_EQ(parse_throttled_periods("usage_usec 9\n"), std::nullopt);
  EXPECT_EQ(parse_throttled_periods(""), std::nullopt);
}

TEST(GroupsWithQuota, AreTheGroupAndAllAboveItOfBothVersions) {
  EXPECT_THAT(groups_with_quota("0::/jobs/one\n"), ElementsAre("jobs/one", "jobs", ""));
  EXPECT_THAT(groups_with_quota("8:pids:/\n4:cpuset:/x\n3:cpu,cpuacct:/job\nnonsense\n"),
              ElementsAre("cpu/job", "cpu"));
}

TEST(ProcessUse, CountsThreadsThatHaveEnded) {
  const ProcessUse before = process_use();
  std::thread([] {
    const ProcessUse start = process_use();
    while (process_use().cpu_seconds < start.cpu_seconds + 0.02) {
    }
  }).join();
  EXPECT_GE(process_use().cpu_seconds, before.cpu_seconds + 0.02);
}

TEST(SystemCounters, AreReadAnewEachTime) {
  const tests::TemporaryFolder root;
  root.write("proc/stat", "cpu0 1 0 0 5 0 0 0 0 0 0\n");
  root.write("proc/self/cgroup", "0::/job\n");
  root.write("sys/fs/cgroup/job/cpu.stat", "nr_throttled 2\n");
  root.write("sys/devices/system/cpu/cpu0/thermal_throttle/core_throttle_count", "30\n");
  root.write("sys/devices/system/cpu/cpu0/thermal_throttle/package_throttle_count", "100\n");
  SystemCounters counters({0}, root.path());
  std::array<CoreTimes, 1> times;
  ASSERT_TRUE(counters.read(times));
  EXPECT_EQ(times[0].idle, 5);
  EXPECT_EQ(counters.throttled(), 132U);
  root.write("proc/stat", "cpu0 1 0 0 25 0 0 0 0 0 0\n");
  root.write("sys/fs/cgroup/job/cpu.stat", "nr_throttled 3\n");
  ASSERT_TRUE(counters.read(times));
  EXPECT_EQ(times[0].idle, 25);
  EXPECT_EQ(counters.throttled(), 133U);
}

TEST(SystemCounters, TellNothingWhereTheSystemDoesNot) {
  const tests::TemporaryFolder root;
  SystemCounters counters({0}, root.path());
  std::array<CoreTimes, 1> times;
  EXPECT_FALSE(counters.read(times));
  EXPECT_EQ(counters.throttled(), std::nullopt);
}

}  // namespace
}  // namespace cnn::bench
