#include "bench/run/profile_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <string>

#include "bench/session/team.h"
#include "tests/bench/session/small_team.h"
#include "tests/support/error_of.h"
#include "tests/support/files.h"

namespace cnn::bench {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

Config with_table(const std::string& path) {
  Config config;
  config.report.tfprof_file = path;
  return config;
}

TEST(ProfileReport, IsWantedForATableOrAPage) {
  EXPECT_FALSE(ProfileReport::is_wanted(Config()));
  EXPECT_TRUE(ProfileReport::is_wanted(with_table("table")));
  Config page;
  page.report.html_report = "page.html";
  EXPECT_TRUE(ProfileReport::is_wanted(page));
}

TEST(ProfileReport, MeasuresNothingUnlessItIsWanted) {
  EXPECT_EQ(ProfileReport(Config(), false).measured(), nullptr);
  EXPECT_NE(ProfileReport(Config(), true).measured(), nullptr)
      << "the first process needs it for its page";
}

TEST(ProfileReport, IsRefusedBeforeARunWhereItsTableCannotBeWritten) {
  const tests::TemporaryFolder folder;
  folder.write("file", "");
  const std::string path = folder / "file/table";
  EXPECT_EQ(tests::error_of([&] { ProfileReport report(with_table(path), false); }),
            "--tfprof_file=" + path + ": cannot write it: Not a directory");
}

TEST(ProfileReport, HasTheKindsOfOperationsThenEachNode) {
  const tests::TemporaryFolder folder;
  const std::string path = folder / "new/table";
  tests::SmallTeam run;
  run.team.start(0);
  ProfileReport report(with_table(path), false);
  for (int step = 0; step < 2; ++step) {
    Timeline timeline;
    run.team.step(step, 0.1, &timeline);
    report.measured()->add(timeline);
  }
  Console console;
  Json result;
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  report.finish(run.team, {{.flops_per_second = 1e9, .bytes_per_second = 1e9}}, console, result);
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "Dumping profile to " + path + "\n");
  const std::string kinds = testing::internal::GetCapturedStderr();
  EXPECT_THAT(kinds, StartsWith("operation"));
  const std::string table = tests::read_file(path);
  EXPECT_THAT(table, AllOf(StartsWith("mean of 2 steps\n\n" + kinds + "\noperation"),
                           HasSubstr("\ndense#")));
  const Json& profile = result["profile"];
  EXPECT_EQ(profile["steps"], 2);
  EXPECT_FALSE(profile.contains("ranks"));
  EXPECT_TRUE(profile["lanes"][0]["spans"][0].contains("planned_start"))
      << "each node has the time of its roofline";
}

TEST(ProfileReport, HasTheLanesOfAllRanksWhereTheFirstProcessWantsThem) {
  tests::SmallTeam run;
  run.team.start(0);
  ProfileReport report(Config(), true);
  Timeline timeline;
  run.team.step(0, 0.1, &timeline);
  report.measured()->add(timeline);
  Console console;
  Json result;
  report.finish(run.team, std::nullopt, console, result);
  ASSERT_EQ(result["profile"]["ranks"].size(), 1U);
  EXPECT_EQ(result["profile"]["ranks"][0]["rank"], 0);
  EXPECT_FALSE(result["profile"]["lanes"][0]["spans"][0].contains("planned_start"))
      << "without costs no step is predicted";
}

TEST(ProfileReport, LeavesNothingBehindWithoutSteps) {
  const tests::TemporaryFolder folder;
  tests::SmallTeam run;
  run.team.start(0);
  const ProfileReport report(with_table(folder / "table"), false);
  Console console;
  Json result;
  report.finish(run.team, std::nullopt, console, result);
  EXPECT_FALSE(result.contains("profile"));
  EXPECT_TRUE(folder.names().empty());
}

}  // namespace
}  // namespace cnn::bench
