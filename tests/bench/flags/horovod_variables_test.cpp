#include "bench/flags/horovod_variables.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <string>
#include <vector>

#include "bench/flags/flags.h"
#include "tests/support/error_of.h"

namespace cnn::bench {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

struct UnderHorovod {
  Config config;
  std::vector<std::string> lines;
};

// given: the flags set on the command line, whose values are in `config`.
UnderHorovod under_horovod(const EnvironmentVariables& variables, Config config = {},
                           const std::vector<std::string>& given = {}) {
  std::vector<Setting> settings = default_settings();
  for (const std::string& flag : given) {
    find_setting(settings, flag).given = true;
  }
  UnderHorovod result{.config = std::move(config), .lines = {}};
  result.lines = apply_horovod_variables(variables, settings, result.config);
  return result;
}

std::string line_of(const std::string& name, const std::string& value) {
  const std::vector<std::string> lines = under_horovod({{"HOROVOD_" + name, value}}).lines;
  return lines.size() == 1 ? lines.front() : "no line or several";
}

TEST(HorovodVariables, SetTheFlagsThatMeanTheSame) {
  const auto [config, lines] = under_horovod({{"HOROVOD_AUTOTUNE", "1"},
                                              {"HOROVOD_STALL_CHECK_TIME_SECONDS", "7"},
                                              {"HOROVOD_STALL_SHUTDOWN_TIME_SECONDS", "70"},
                                              {"HOROVOD_START_TIMEOUT", "90"},
                                              {"HOROVOD_TIMELINE", "t.json"}});
  EXPECT_EQ(config.comm.calibrate, LinkCalibration::force);
  EXPECT_EQ(config.comm.stall_warn_s, 7);
  EXPECT_EQ(config.comm.stall_abort_s, 70);
  EXPECT_EQ(config.comm.start_timeout_s, 90);
  EXPECT_EQ(config.report.trace_file, "t.json");
  EXPECT_THAT(lines, ElementsAre("HOROVOD_AUTOTUNE=1 sets --comm_calibrate=force",
                                 "HOROVOD_STALL_CHECK_TIME_SECONDS=7 sets --comm_stall_warn_s=7",
                                 "HOROVOD_STALL_SHUTDOWN_TIME_SECONDS=70 sets "
                                 "--comm_stall_abort_s=70",
                                 "HOROVOD_START_TIMEOUT=90 sets --comm_start_timeout_s=90",
                                 "HOROVOD_TIMELINE=t.json sets --trace_file=t.json"));
}

TEST(HorovodVariables, LimitBucketsByTheFusionThreshold) {
  const auto [fused, lines] = under_horovod({{"HOROVOD_FUSION_THRESHOLD", "33554433"}});
  EXPECT_EQ(fused.comm.bucket_mb, 33) << "rounded up";
  EXPECT_EQ(fused.comm.first_bucket_kb, Config{}.comm.first_bucket_kb);
  EXPECT_THAT(lines, ElementsAre("HOROVOD_FUSION_THRESHOLD=33554433 sets --comm_bucket_mb=33"));
  const auto [small, lines_of_small] = under_horovod({{"HOROVOD_FUSION_THRESHOLD", "65536"}});
  EXPECT_EQ(small.comm.first_bucket_kb, 64);
  EXPECT_EQ(small.comm.last_bucket_kb, 64);
  EXPECT_THAT(lines_of_small, ElementsAre("HOROVOD_FUSION_THRESHOLD=65536 sets --comm_bucket_mb=1 "
                                          "--comm_first_bucket_kb=64 --comm_last_bucket_kb=64"));
  EXPECT_EQ(under_horovod({{"HOROVOD_FUSION_THRESHOLD", "0"}}).config.comm.bucket_mb, 0);
  EXPECT_EQ(
      under_horovod({{"HOROVOD_FUSION_THRESHOLD", "9223372036854775807"}}).config.comm.bucket_mb,
      1 << 20);
}

TEST(HorovodVariables, YieldToFlagsOfTheCommandLine) {
  const auto [given, lines] =
      under_horovod({{"HOROVOD_FUSION_THRESHOLD", "0"}}, {}, {"comm_bucket_mb"});
  EXPECT_EQ(given.comm.bucket_mb, Config{}.comm.bucket_mb);
  EXPECT_EQ(given.comm.first_bucket_kb, Config{}.comm.first_bucket_kb);
  EXPECT_THAT(lines,
              ElementsAre("HOROVOD_FUSION_THRESHOLD=0 has no effect: --comm_bucket_mb is given"));
}

TEST(HorovodVariables, LeaveAGivenSizeOfTheFirstBucket) {
  Config config;
  config.comm.first_bucket_kb = 512;
  const auto [fused, lines] =
      under_horovod({{"HOROVOD_FUSION_THRESHOLD", "0"}}, config, {"comm_first_bucket_kb"});
  EXPECT_EQ(fused.comm.first_bucket_kb, 512);
  EXPECT_EQ(fused.comm.last_bucket_kb, 0);
  EXPECT_THAT(lines, ElementsAre("HOROVOD_FUSION_THRESHOLD=0 sets --comm_bucket_mb=0 "
                                 "--comm_last_bucket_kb=0"));
}

TEST(HorovodVariables, WarnOfNoStallWhereTheCheckIsDisabledWhateverItsTime) {
  for (const bool disabled_first : {false, true}) {
    EnvironmentVariables variables{{"HOROVOD_STALL_CHECK_TIME_SECONDS", "60"},
                                   {"HOROVOD_STALL_CHECK_DISABLE", "1"}};
    if (disabled_first) {
      std::swap(variables.front(), variables.back());
    }
    const auto [config, lines] = under_horovod(variables);
    EXPECT_EQ(config.comm.stall_warn_s, 0);
    EXPECT_THAT(lines, testing::UnorderedElementsAre(
                           "HOROVOD_STALL_CHECK_DISABLE=1 sets --comm_stall_warn_s=0",
                           "HOROVOD_STALL_CHECK_TIME_SECONDS=60 has no effect: "
                           "HOROVOD_STALL_CHECK_DISABLE is set"));
  }
  const auto enabled = under_horovod(
      {{"HOROVOD_STALL_CHECK_DISABLE", "0"}, {"HOROVOD_STALL_CHECK_TIME_SECONDS", "60"}});
  EXPECT_EQ(enabled.config.comm.stall_warn_s, 60);
}

TEST(HorovodVariables, SayWhyTheyHaveNoEffect) {
  EXPECT_THAT(line_of("CYCLE_TIME", "5"), StartsWith("HOROVOD_CYCLE_TIME=5 has no effect: a "));
  EXPECT_EQ(line_of("AUTOTUNE", "0"),
            "HOROVOD_AUTOTUNE=0 has no effect: 0 leaves --comm_calibrate as it is");
  EXPECT_THAT(line_of("STALL_SHUTDOWN_TIME_SECONDS", "0"),
              HasSubstr("has no effect: no rank waits for ever; --comm_stall_abort_s says"));
  EXPECT_EQ(line_of("TIMELINE", ""),
            "HOROVOD_TIMELINE= has no effect: it names no file for a trace");
  EXPECT_THAT(line_of("TIMELINE", "DYNAMIC"), HasSubstr("has no effect: it names no file"));
  EXPECT_EQ(under_horovod({{"HOROVOD_TIMELINE", "DYNAMIC"}}).config.report.trace_file, "");
}

TEST(HorovodVariables, AreRefusedByNameWhereTheirValueIsWrong) {
  for (const std::string value : {"many", "", "-1", "1.5", "1 ", "99999999999999999999"}) {
    EXPECT_EQ(tests::error_of([&] { line_of("FUSION_THRESHOLD", value); }),
              "HOROVOD_FUSION_THRESHOLD=" + value + ": it is a number from 0 on");
  }
  EXPECT_THAT(tests::error_of([] { line_of("TIMELINE", "hdfs://host/t.json"); }),
              StartsWith("HOROVOD_TIMELINE=hdfs://host/t.json: files are written through"));
}

TEST(HorovodVariables, AreLeftAloneIfTheNameIsUnknown) {
  EXPECT_THAT(under_horovod({{"HOROVOD_RANK", "x"},
                             {"FUSION_THRESHOLD", "1"},
                             {"HOROVOD_FUSION_THRESHOLD_", "1"},
                             {"XHOROVOD_AUTOTUNE", "1"}})
                  .lines,
              IsEmpty());
}

TEST(HorovodVariables, ActUnderHorovodOnly) {
  const RunEnvironment environment{.horovod = {{"HOROVOD_FUSION_THRESHOLD", "33554432"}}};
  const auto bucket_mb = [&](const std::vector<std::string>& words) {
    return parse_flags(words, environment).config.comm.bucket_mb;
  };
  EXPECT_EQ(bucket_mb({"--variable_update=horovod"}), 32);
  EXPECT_EQ(bucket_mb({"--variable_update=horovod", "--comm_bucket_mb=5"}), 5);
  EXPECT_EQ(bucket_mb({}), Config{}.comm.bucket_mb);
}

}  // namespace
}  // namespace cnn::bench
