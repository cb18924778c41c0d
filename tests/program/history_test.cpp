#include <fstream>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/program/program.h"

namespace cnn::tests {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using Words = std::vector<std::string>;

Finished run_for_history(const Words& more) {
  Words flags{"--device=cpu",   "--data_name=mnist",      "--model=lenet",
              "--batch_size=4", "--num_warmup_batches=1", "--nomeasure_ceilings"};
  flags.insert(flags.end(), more.begin(), more.end());
  return run_program(flags);
}

TEST(HistoryFlag, AddsALineForEachCompleteRun) {
  const TemporaryFolder folder;
  const std::string history = folder / "a/history.jsonl";
  for (int run = 0; run < 2; ++run) {
    const Finished finished = run_for_history({"--num_batches=3", "--history=" + history});
    EXPECT_EQ(finished.status, 0) << finished.err;
  }
  const Finished failed = run_for_history(
      {"--num_batches=1", "--history=" + history, "--data_dir=" + (folder / "none")});
  EXPECT_NE(failed.status, 0);
  std::ifstream lines(history);
  int count = 0;
  for (std::string line; std::getline(lines, line); ++count) {
    const auto json = nlohmann::json::parse(line);
    EXPECT_EQ(json["history"], 1);
    EXPECT_EQ(json["model"]["name"], "lenet");
    EXPECT_EQ(json["images_per_step"], 4);
    EXPECT_EQ(json["timed_steps"], 3);
    EXPECT_GT(json["step_seconds"], 0);
  }
  EXPECT_EQ(count, 2);
}

TEST(HistoryFlag, NamesAPathThatCannotBeWrittenBeforeTheFirstStep) {
  const TemporaryFolder folder;
  folder.write("file", "x");
  const Finished run =
      run_for_history({"--num_batches=1", "--history=" + (folder / "file/history")});
  EXPECT_EQ(run.status, 1);
  EXPECT_THAT(run.err, AllOf(HasSubstr("--history=" + (folder / "file/history")),
                             HasSubstr("cannot write it")));
  EXPECT_TRUE(run.step_lines().empty());
}

}  // namespace
}  // namespace cnn::tests
