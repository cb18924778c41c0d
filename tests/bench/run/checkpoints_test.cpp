#include "bench/run/checkpoints.h"

#include <atomic>
#include <chrono>
#include <filesystem>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <string>
#include <thread>

#include "bench/session/team.h"
#include "tests/bench/session/small_team.h"
#include "tests/support/files.h"

namespace cnn::bench {
namespace {

using testing::AllOf;
using testing::HasSubstr;

// A run of a few steps whose end the observer is told.
class CheckpointedRun {
 public:
  explicit CheckpointedRun(Checkpoints::Options options)
      : run_({"--train_dir=" + folder_.path().string()}),
        checkpoints_(run_.team, console_, std::move(options)) {
    run_.team.start(0);
    checkpoints_.start({});
  }

  // seconds: the reported duration of the step.
  std::string step(double seconds = 0.01) {
    run_.team.step(global_step_, 0.1);
    ++global_step_;
    const FinishedStep step{
        .number = global_step_, .global_step = global_step_, .values = {.seconds = seconds}};
    testing::internal::CaptureStderr();
    checkpoints_.step_finished(step);
    if (checkpoints_.work_is_due(step)) {
      EXPECT_EQ(checkpoints_.work(step), Next::go_on);
    }
    return testing::internal::GetCapturedStderr();
  }
  void end() { checkpoints_.end({.global_step = global_step_}); }

  std::string file(int step) const {
    return folder_ / ("model.ckpt-" + std::to_string(step) + ".safetensors");
  }
  bool has(int step) const { return std::filesystem::exists(file(step)); }

 private:
  tests::TemporaryFolder folder_;
  tests::SmallTeam run_;
  Console console_;
  Checkpoints checkpoints_;
  std::int64_t global_step_ = 0;
};

TEST(Checkpoints, AreSavedAfterTheStepsAskedForAndAtTheEnd) {
  CheckpointedRun run({.every_steps = 2});
  for (int step = 0; step < 3; ++step) {
    EXPECT_EQ(run.step(), "");
  }
  EXPECT_FALSE(run.has(1));
  EXPECT_TRUE(run.has(2));
  EXPECT_FALSE(run.has(3));
  run.end();
  EXPECT_TRUE(run.has(3));
}

TEST(Checkpoints, AreOnlySavedAtTheEndWhereNothingElseIsAskedFor) {
  CheckpointedRun run({});
  run.step();
  run.step();
  EXPECT_FALSE(run.has(2));
  run.end();
  EXPECT_TRUE(run.has(2));
}

TEST(Checkpoints, AreNotSavedTwiceForOneStep) {
  CheckpointedRun run({.every_steps = 1});
  run.step();
  ASSERT_TRUE(run.has(1));
  std::filesystem::remove(run.file(1));
  run.end();
  EXPECT_FALSE(run.has(1));
}

TEST(Checkpoints, AreSavedBeforeTheFirstStepTooIfTheRunEndsThere) {
  CheckpointedRun run({.every_steps = 1});
  run.end();
  EXPECT_TRUE(run.has(0));
}

TEST(Checkpoints, LeaveTheRestoredOneAsItIsUntilAStepHasRun) {
  CheckpointedRun idle({.restored_step = 0});
  idle.end();
  EXPECT_FALSE(idle.has(0)) << "no step ran, so the checkpoint of step 0 is left alone";
  CheckpointedRun run({.restored_step = 0});
  run.step();
  run.end();
  EXPECT_TRUE(run.has(1));
}

TEST(Checkpoints, WarnOnceOfALauncherThatKillsRanksBeforeAStepEnds) {
  CheckpointedRun run({.kill_delay = KillDelay{10}, .asked_to_end = [] { return false; }});
  EXPECT_EQ(run.step(100), "") << "the first step does not count";
  EXPECT_EQ(run.step(5), "") << "half of the time is left for the checkpoint";
  EXPECT_THAT(run.step(100),
              AllOf(HasSubstr("mpirun kills the ranks 10 s after Ctrl-C, but a step takes 100.0 s"),
                    HasSubstr("odls_base_sigkill_timeout 200")));
  EXPECT_EQ(run.step(100), "");
  run.end();
  EXPECT_TRUE(run.has(4));
}

TEST(Checkpoints, AreSavedFromTheLastFinishedStepWhenTheSignalComes) {
  std::atomic<bool> request{false};
  CheckpointedRun run(
      {.kill_delay = KillDelay{10}, .asked_to_end = [&] { return request.load(); }});
  run.step(100);
  run.step(100);
  request = true;
  const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  while (!run.has(2) && std::chrono::steady_clock::now() < end) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  EXPECT_TRUE(run.has(2));
}

}  // namespace
}  // namespace cnn::bench
