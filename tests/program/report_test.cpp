#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/program/program.h"

namespace cnn::tests {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

std::vector<std::string> small_run(std::vector<std::string> more) {
  std::vector<std::string> flags{"--device=cpu",      "--model=lenet",          "--data_name=mnist",
                                 "--batch_size=2",    "--num_warmup_batches=2", "--num_batches=3",
                                 "--display_every=1", "--nomeasure_ceilings"};
  flags.insert(flags.end(), more.begin(), more.end());
  return flags;
}

TEST(Reports, AreWrittenWhereFlagsAskForThem) {
  const TemporaryFolder folder;
  const Finished run = run_program(
      small_run({"--html_report=" + (folder / "p.html"), "--tfprof_file=" + (folder / "sub/t.txt"),
                 "--graph_file=" + (folder / "g.dot"), "--result_json=" + (folder / "r.json")}));
  ASSERT_EQ(run.status, 0) << run.err;
  EXPECT_THAT(read_file(folder / "p.html"),
              AllOf(StartsWith("<!doctype html>"), HasSubstr("Step times"),
                    HasSubstr("Lanes of a step"), HasSubstr("</html>")));
  EXPECT_THAT(read_file(folder / "sub/t.txt"),
              AllOf(HasSubstr("GFLOP/s"), HasSubstr("conv_backward")));
  EXPECT_THAT(read_file(folder / "g.dot"), StartsWith("digraph"));
  EXPECT_THAT(run.out,
              AllOf(HasSubstr("Writing graph as DOT to "), HasSubstr("Dumping profile to ")));
  const auto json = nlohmann::json::parse(read_file(folder / "r.json"));
  EXPECT_EQ(json["format"], 2);
  EXPECT_EQ(json["profile"]["steps"], 3);
  EXPECT_EQ(json["steps"][0]["profiled"], true);
}

TEST(Reports, HaveNoProfileUnlessRequested) {
  const TemporaryFolder folder;
  const Finished run = run_program(small_run({"--result_json=" + (folder / "r.json")}));
  const auto json = nlohmann::json::parse(read_file(folder / "r.json"));
  EXPECT_FALSE(json.contains("profile"));
  EXPECT_FALSE(json["steps"][0].contains("profiled"));
}

TEST(Reports, AreRefusedBeforeTheFirstStepWhereTheyCannotBeWritten) {
  const TemporaryFolder folder;
  folder.write("file", "");
  for (const char* flag : {"--html_report=", "--tfprof_file=", "--graph_file=", "--take_turns="}) {
    const Finished run = run_program(small_run({flag + (folder / "file/x")}));
    EXPECT_EQ(run.status, 1) << flag;
    EXPECT_THAT(run.err, HasSubstr(flag + (folder / "file/x")));
    EXPECT_TRUE(run.step_lines().empty()) << flag;
  }
}

TEST(SliceLock, AllBelongToASingleRun) {
  const TemporaryFolder folder;
  const Finished run = run_program(
      small_run({"--take_turns=" + (folder / "turns"), "--result_json=" + (folder / "r.json")}));
  ASSERT_EQ(run.status, 0) << run.err;
  const auto json = nlohmann::json::parse(read_file(folder / "r.json"));
  EXPECT_GE(json["turns"]["passed"], 1);
}

}  // namespace
}  // namespace cnn::tests
