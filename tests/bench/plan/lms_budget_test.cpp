#include "bench/plan/lms_budget.h"

#include <gtest/gtest.h>

#include "bench/flags/config.h"
#include "bench/ranks/rank_context.h"

namespace cnn::bench {
namespace {

constexpr std::size_t budget_mib = std::size_t{1} << 20U;

// A device of 100 MiB.
struct LimitedDevice {
  LimitedDevice() { backend.memory = {.device = 100 * budget_mib, .text = "a device"}; }
  std::string notice() const { return idle_budget_flags(flags, only_rank(backend)); }
  std::size_t budget() const { return device_budget(flags, only_rank(backend)); }

  LmsFlags flags;
  Backend backend;
};

TEST(IdleBudgetFlags, AreNoneWhereAllFlagsAct) {
  LimitedDevice device;
  EXPECT_EQ(device.notice(), "");
  device.flags.exclude = 20;
  device.flags.mem_ratio = 0.5;
  EXPECT_EQ(device.notice(), "");
  device.flags = {.limit = 30};
  EXPECT_EQ(device.notice(), "");
}

TEST(IdleBudgetFlags, NameARatioAndAnExclusionBesideASmallerLimit) {
  LimitedDevice device;
  device.flags.mem_ratio = 0.5;
  for (const int limit : {30, 50}) {
    device.flags.limit = limit;
    EXPECT_EQ(device.budget(), static_cast<std::size_t>(limit) * budget_mib);
    EXPECT_EQ(device.notice(), "--lms_mem_ratio=0.5 does not act: --lms_limit=" +
                                   std::to_string(limit) + " leaves no less memory free");
  }
  device.flags.limit = 30;
  device.flags.exclude = 20;
  EXPECT_EQ(device.notice(),
            "--lms_exclude=20 and --lms_mem_ratio=0.5 do not act: --lms_limit=30 leaves no less "
            "memory free");
}

TEST(IdleBudgetFlags, NameALimitBesideASmallerShare) {
  LimitedDevice device;
  device.flags.mem_ratio = 0.5;
  device.flags.limit = 51;
  EXPECT_EQ(device.budget(), 50 * budget_mib);
  EXPECT_EQ(device.notice(),
            "--lms_limit=51 does not act: 50 MiB are there (a device, times --lms_mem_ratio=0.5)");
}

TEST(IdleBudgetFlags, DoNotNameTheShareOfASimulation) {
  LimitedDevice device;
  device.flags.policy = "tflms2";
  device.flags.mem_ratio = 0.5;
  device.flags.limit = 30;
  EXPECT_EQ(device.notice(), "") << "the policy tflms2 simulates with the ratio beside the limit";
}

}  // namespace
}  // namespace cnn::bench
