#include "bench/run/training_loop.h"

#include <csignal>
#include <functional>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <memory>
#include <string>
#include <vector>

#include "bench/ranks/interruption.h"
#include "bench/session/team.h"
#include "runtime/error.h"
#include "tests/bench/session/small_team.h"
#include "tests/support/error_of.h"

namespace cnn::bench {
namespace {

using testing::ElementsAre;

// The behaviour of an observer when the loop reaches given steps.
struct LoopRules {
  std::int64_t work_at = 1000, timeline_at = 1000;
  Next next = Next::go_on;
  std::function<void(std::int64_t)> in_step{};  // gets the number of the finished step
};

// Logs each event as one word.
class LoopListener final : public Observer {
 public:
  LoopListener(std::vector<std::string>& heard, LoopRules rules)
      : heard_(heard), rules_(std::move(rules)) {}

  void start(const RunStart& run) override { hear("start", run.timed_steps); }
  void timing_starts() override { hear("timing"); }
  bool wants_timeline(std::int64_t number) const override { return number == rules_.timeline_at; }
  void step_finished(const FinishedStep& step) override {
    hear(step.timeline != nullptr ? "traced" : "step", step.number);
    if (rules_.in_step) {
      rules_.in_step(step.number);
    }
  }
  bool work_is_due(const FinishedStep& step) const override {
    return step.number == rules_.work_at;
  }
  Next work(const FinishedStep& /*step*/) override {
    hear("work");
    return rules_.next;
  }
  void pause() override { hear("pause"); }
  void resume() override { hear("resume"); }
  void end(const RunEnd& end) override { hear_end("end", end); }
  void interrupted(const RunEnd& end, std::string_view by) override {
    hear_end("interrupted by " + std::string(by), end);
  }
  void failed(const RunEnd& end, std::string_view what) override {
    hear_end("failed: " + std::string(what), end);
  }

 private:
  void hear(const std::string& event) { heard_.push_back(event); }
  void hear(const std::string& event, std::int64_t number) {
    hear(event + " " + std::to_string(number));
  }
  void hear_end(const std::string& event, const RunEnd& end) {
    hear(event + ", " + std::to_string(end.timed_steps) + " timed, at " +
         std::to_string(end.global_step));
  }

  std::vector<std::string>& heard_;
  LoopRules rules_;
};

struct LoopRun {
  std::vector<std::string> heard;
  std::string error;
  std::int64_t timed = 0;
};

// Runs two warm-up steps and three timed steps from this global step on, with one observer per
// rule.
LoopRun run_loop(const std::vector<LoopRules>& rules, std::int64_t global_step = 0) {
  tests::SmallTeam run({"--num_warmup_batches=2", "--num_batches=3"});
  run.team.start(global_step);
  LoopRun result;
  Observers observers;
  for (const LoopRules& each : rules) {
    observers.push_back(std::make_unique<LoopListener>(result.heard, each));
  }
  const Console console;
  const Interruption interruption(console);
  TrainingLoop loop(run.job, run.team, observers, interruption, global_step);
  result.error = tests::error_of([&] { loop.run(); });
  result.timed = loop.timed_steps();
  return result;
}

TEST(TrainingLoop, TellsOfWarmUpAndTimedSteps) {
  const LoopRun run = run_loop({{}});
  EXPECT_THAT(run.heard, ElementsAre("start 3", "step -1", "step 0", "timing", "step 1", "step 2",
                                     "step 3", "end, 3 timed, at 5"));
  EXPECT_EQ(run.timed, 3);
}

TEST(TrainingLoop, CountsTheStepsThatACheckpointHasBehindIt) {
  EXPECT_THAT(run_loop({{}}, 2).heard, ElementsAre("start 1", "step -1", "step 0", "timing",
                                                   "step 1", "end, 1 timed, at 5"));
}

TEST(TrainingLoop, TimesNothingPastTheEnd) {
  EXPECT_THAT(run_loop({{}}, 3).heard,
              ElementsAre("start 0", "step -1", "step 0", "end, 0 timed, at 5"));
  EXPECT_THAT(run_loop({{}}, 10).heard, ElementsAre("start -7", "end, 0 timed, at 10"));
}

TEST(TrainingLoop, TellsEverybodyOfThePauseInWhichOneWorks) {
  EXPECT_THAT(
      run_loop({{}, {.work_at = 3}}).heard,
      ElementsAre("start 3", "start 3", "step -1", "step -1", "step 0", "step 0", "timing",
                  "timing", "step 1", "step 1", "step 2", "step 2", "step 3", "step 3", "pause",
                  "pause", "work", "resume", "resume", "end, 3 timed, at 5", "end, 3 timed, at 5"));
}

TEST(TrainingLoop, EndsWhenAnObserverSaysStop) {
  EXPECT_THAT(run_loop({{.work_at = 1, .next = Next::stop}}).heard,
              ElementsAre("start 3", "step -1", "step 0", "timing", "step 1", "pause", "work",
                          "end, 1 timed, at 3"));
}

// The loop calls no work() during the warm-up.
TEST(TrainingLoop, DoesNoWorkBeforeTheFirstTimedStep) {
  EXPECT_THAT(run_loop({{.work_at = 0}}).heard, testing::Not(testing::Contains("work")));
}

TEST(TrainingLoop, FinishesTheStepInWhichASignalComes) {
  EXPECT_THAT(run_loop({{.in_step =
                             [](std::int64_t number) {
                               if (number == 1) {
                                 std::raise(SIGTERM);
                               }
                             }}})
                  .heard,
              ElementsAre("start 3", "step -1", "step 0", "timing", "step 1",
                          "interrupted by SIGTERM, 1 timed, at 3"));
}

TEST(TrainingLoop, TellsEverybodyWhyItFailedAndThrowsOn) {
  const LoopRun run = run_loop(
      {{.in_step = [](std::int64_t number) { check(number < 2, "the disk is full"); }}, {}});
  EXPECT_EQ(run.error, "the disk is full");
  ASSERT_GE(run.heard.size(), 2U);
  EXPECT_THAT(std::vector(run.heard.end() - 3, run.heard.end()),
              ElementsAre("step 2", "failed: the disk is full, 2 timed, at 4",
                          "failed: the disk is full, 2 timed, at 4"));
}

TEST(TrainingLoop, TakesTheTimelineOfAStepThatAnyObserverWants) {
  EXPECT_THAT(run_loop({{.timeline_at = 0}}).heard,
              ElementsAre("start 3", "step -1", "traced 0", "timing", "step 1", "step 2", "step 3",
                          "end, 3 timed, at 5"));
}

}  // namespace
}  // namespace cnn::bench
