#include "bench/run/hash_file.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "bench/session/team.h"
#include "bench/session/tensor_hashes.h"
#include "tests/bench/session/small_team.h"
#include "tests/support/files.h"

namespace cnn::bench {
namespace {

using testing::ElementsAre;
using testing::StartsWith;

// Trains and writes hashes; the observer is told of each step.
class HashedTraining {
 public:
  explicit HashedTraining(const std::string& more = "--hash_steps=1")
      : run_({"--hash_file=" + (folder_ / "new/hashes"), more}) {
    run_.team.start(0);
    file_.emplace(run_.job, run_.team, Json{{"version", "0.1\n"}, {"secret", 1}});
  }

  void step(std::int64_t global_step) {
    file_->step_starts(global_step);
    run_.team.step(global_step - 1, 0.1);
    file_->step_finished({.number = global_step, .global_step = global_step});
  }
  // A step that ends in the comparison of its hashes, or in an observer that hears of it before:
  // then the run counts it.
  void failing_step(std::int64_t global_step, bool counted = false) {
    file_->step_starts(global_step);
    run_.team.step(global_step - 1, 0.1);
    file_->failed({.global_step = global_step - (counted ? 0 : 1)}, "it failed");
  }
  HashFile& file() { return *file_; }

  std::vector<std::string> lines(std::string_view kind) const {
    std::vector<std::string> found;
    std::istringstream text(tests::read_file(folder_ / "new/hashes"));
    for (std::string line; std::getline(text, line);) {
      if (line.starts_with(kind)) {
        found.push_back(line);
      }
    }
    return found;
  }
  std::size_t tensors() const { return run_.team.hashed_tensors()->tensors().all().size(); }

 private:
  tests::TemporaryFolder folder_;
  tests::SmallTeam run_;
  std::optional<HashFile> file_;
};

TEST(HashFile, BeginsWithTheRunAndItsTensors) {
  const HashedTraining training;
  EXPECT_THAT(training.lines(""), testing::Contains("cnn_benchmarks tensor hashes 1"));
  ASSERT_EQ(training.lines("run\t").size(), 1U);
  const Json run = Json::parse(training.lines("run\t")[0].substr(4));
  EXPECT_EQ(run["mode"], "training");
  EXPECT_EQ(run["batch_size"], 2);
  EXPECT_EQ(run["version"], "0.1\n") << "on one line";
  EXPECT_FALSE(run.contains("secret"));
  EXPECT_EQ(training.lines("tensor\t").size(), training.tensors());
}

TEST(HashFile, HasEveryTensorOfEachStep) {
  HashedTraining training;
  training.step(1);
  training.step(2);
  EXPECT_THAT(training.lines("step\t"), ElementsAre("step\t1", "step\t2"));
  EXPECT_THAT(training.lines("end\t"),
              ElementsAre(StartsWith(fmt::format("end\t1\t{}\t", training.tensors())),
                          StartsWith(fmt::format("end\t2\t{}\t", training.tensors()))));
}

TEST(HashFile, LeavesOutTheStepsThatAreNotHashed) {
  HashedTraining training("--hash_steps=2");
  for (const int step : {1, 2, 3}) {
    training.step(step);
  }
  EXPECT_THAT(training.lines("step\t"), ElementsAre("step\t2"));
}

TEST(HashFile, HasTheStepAboutWhichRanksDisagree) {
  HashedTraining training;
  training.step(1);
  training.failing_step(2);
  EXPECT_THAT(training.lines("step\t"), ElementsAre("step\t1", "step\t2"));
}

TEST(HashFile, HasAStepUnderItsNumberIfAnotherObserverFailsInIt) {
  HashedTraining training;
  training.step(1);
  training.failing_step(2, true);
  EXPECT_THAT(training.lines("step\t"), ElementsAre("step\t1", "step\t2"));
}

TEST(HashFile, HasTheFirstStepIfRanksDisagreeThere) {
  HashedTraining training;
  training.failing_step(1);
  EXPECT_THAT(training.lines("step\t"), ElementsAre("step\t1"));
}

// The run fails like this if a later observer cannot write its file.
TEST(HashFile, HasNoStepAgainWhereTheRunFailsBetweenTwo) {
  HashedTraining training;
  training.step(1);
  training.file().failed({.global_step = 1}, "the disk is full");
  EXPECT_THAT(training.lines("step\t"), ElementsAre("step\t1"));
}

}  // namespace
}  // namespace cnn::bench
