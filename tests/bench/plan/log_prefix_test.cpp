#include "bench/plan/log_prefix.h"

#include <cstdlib>
#include <ctime>
#include <gtest/gtest.h>

namespace cnn::bench {
namespace {

// Returns 21 August 2018, 4:26:41.953693 local time.
std::chrono::system_clock::time_point some_time() {
  std::tm local{};
  local.tm_year = 118;
  local.tm_mon = 7;
  local.tm_mday = 21;
  local.tm_hour = 4;
  local.tm_min = 26;
  local.tm_sec = 41;
  local.tm_isdst = -1;
  return std::chrono::system_clock::from_time_t(std::mktime(&local)) +
         std::chrono::microseconds(953'693);
}

TEST(LogPrefix, IsThatOfGlogForCaffe) {
  EXPECT_EQ(log_prefix("caffe", some_time(), 60'726),
            "I0821 04:26:41.953693 60726 syncedmem.cpp:349] ");
  EXPECT_EQ(log_prefix("caffe", some_time() - std::chrono::microseconds(953'651), 123),
            "I0821 04:26:41.000042   123 syncedmem.cpp:349] ");
}

TEST(LogPrefix, IsThatOfAbslForTheSecondTflms) {
  EXPECT_EQ(log_prefix("tflms2", some_time(), 1'234'567),
            "I0821 04:26:41.953693 1234567 lms.py:1275] ");
}

TEST(LogPrefix, IsEmptyForPoliciesWithoutOne) {
  for (const char* policy : {"tflms1", "reclaim", "planned", ""}) {
    EXPECT_EQ(log_prefix(policy, some_time(), 1), "") << policy;
  }
}

}  // namespace
}  // namespace cnn::bench
