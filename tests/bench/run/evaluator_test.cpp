#include "bench/run/evaluator.h"

#include <csignal>
#include <functional>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <string>
#include <vector>

#include "bench/plan/job.h"
#include "bench/ranks/interruption.h"
#include "bench/session/team.h"
#include "tests/bench/session/small_team.h"
#include "tests/support/files.h"

namespace cnn::bench {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

const std::vector<std::string> while_training{"--eval_during_training_every_n_steps=2",
                                              "--eval_batch_size=3", "--num_eval_batches=4",
                                              "--display_every=2"};

// A training that evaluates between two steps.
struct EvaluatedRun {
  explicit EvaluatedRun(std::vector<std::string> flags = while_training)
      : run(flags), interruption(console) {}

  Evaluator evaluator() { return {run.job, run.team, console, result, interruption}; }
  // Returns what `work` prints on stdout.
  static std::string printed_by(const std::function<void()>& work) {
    testing::internal::CaptureStdout();
    work();
    return testing::internal::GetCapturedStdout();
  }

  tests::SmallTeam run;
  Console console;
  Json result;
  Interruption interruption;
};

std::vector<std::string> with_flag(std::vector<std::string> flags, const std::string& more) {
  flags.push_back(more);
  return flags;
}

TEST(Evaluator, PrintsAndRecordsTheMeanOverItsBatches) {
  EvaluatedRun evaluated;
  evaluated.run.team.start(0);
  EvaluationResult found;
  const std::string out =
      EvaluatedRun::printed_by([&] { found = evaluated.evaluator().evaluate(7); });
  EXPECT_EQ(found.global_step, 7);
  EXPECT_EQ(found.examples, 4 * 3);
  EXPECT_GT(found.images_per_sec, 0);
  EXPECT_GT(found.base_loss, 0);
  EXPECT_LE(found.top_1, found.top_5);
  EXPECT_THAT(out, AllOf(testing::StartsWith("2\t"), HasSubstr("\n4\t"),
                         HasSubstr("\nAccuracy @ 1 = "), HasSubstr(" [12 examples]\n")));
  EXPECT_EQ(evaluated.result["evaluation"], Json::array({to_json(found)}));
}

TEST(Evaluator, FindsTheSameAgain) {
  EvaluatedRun evaluated;
  evaluated.run.team.start(0);
  Evaluator evaluator = evaluated.evaluator();
  EvaluationResult first, second;
  EvaluatedRun::printed_by([&] {
    first = evaluator.evaluate(1);
    second = evaluator.evaluate(1);
  });
  EXPECT_EQ(first.base_loss, second.base_loss);
  EXPECT_EQ(first.top_5, second.top_5);
  EXPECT_EQ(evaluated.result["evaluation"].size(), 2U);
}

TEST(Evaluator, ReportsNothingIfItIsInterruptedBeforeTheFirstBatch) {
  EvaluatedRun evaluated;
  evaluated.run.team.start(0);
  std::raise(SIGTERM);
  EvaluationResult found;
  EXPECT_EQ(EvaluatedRun::printed_by([&] { found = evaluated.evaluator().evaluate(7); }), "");
  EXPECT_EQ(found.examples, 0);
  EXPECT_FALSE(evaluated.result.contains("evaluation"));
}

TEST(Evaluator, SaysThatAnEvaluationOfNoBatchesFindsNothing) {
  EvaluatedRun evaluated;
  evaluated.run.job.eval_length = {};
  evaluated.run.team.start(0);
  testing::internal::CaptureStderr();
  EXPECT_EQ(EvaluatedRun::printed_by([&] { evaluated.evaluator().evaluate(7); }), "");
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              HasSubstr("nothing was evaluated: the evaluation is 0 batches long"));
  EXPECT_FALSE(evaluated.result.contains("evaluation"));
}

TEST(Evaluator, SaysThatThereIsNoCheckpoint) {
  const tests::TemporaryFolder folder;
  EvaluatedRun evaluated({"--eval", "--num_eval_batches=1", "--eval_dir=" + (folder / "events"),
                          "--train_dir=" + folder.path().string()});
  Evaluator evaluator = evaluated.evaluator();
  EXPECT_EQ(EvaluatedRun::printed_by([&] { evaluator.run(); }),
            "Checkpoint not found in " + folder.path().string() + "\n");
}

TEST(Evaluator, LoadsTheNewestCheckpoint) {
  const tests::TemporaryFolder folder;
  const std::string train_dir = "--train_dir=" + folder.path().string();
  {
    tests::SmallTeam training({train_dir});
    training.team.start(0);
    training.team.save(3);
    training.team.save(12);
  }
  EvaluatedRun evaluated(
      {"--eval", "--num_eval_batches=1", "--eval_dir=" + (folder / "events"), train_dir});
  Evaluator evaluator = evaluated.evaluator();
  EXPECT_THAT(EvaluatedRun::printed_by([&] { evaluator.run(); }),
              AllOf(HasSubstr("model.ckpt-12"), HasSubstr("total images/sec: ")));
  EXPECT_EQ(evaluated.result["evaluation"][0]["global_step"], 12);
}

TEST(TrainingEvaluation, TakesAnAccuracyOfZeroForNone) {
  EvaluatedRun evaluated(with_flag(while_training, "--stop_at_top_1_accuracy=0"));
  evaluated.run.team.start(0);
  TrainingEvaluation observer(evaluated.run.job, evaluated.evaluator(), evaluated.console);
  observer.start({.timed_steps = 4});
  EXPECT_THAT(EvaluatedRun::printed_by(
                  [&] { EXPECT_EQ(observer.work({.number = 2, .global_step = 2}), Next::go_on); }),
              HasSubstr("Resuming training"));
}

TEST(TrainingEvaluation, StopsTheTrainingAtTheAccuracyAskedFor) {
  EvaluatedRun evaluated(with_flag(while_training, "--stop_at_top_1_accuracy=-1"));
  evaluated.run.team.start(0);
  TrainingEvaluation observer(evaluated.run.job, evaluated.evaluator(), evaluated.console);
  observer.start({.timed_steps = 4});
  const FinishedStep step{.number = 2, .global_step = 2};
  EXPECT_FALSE(observer.work_is_due({.number = 1, .global_step = 1}));
  EXPECT_TRUE(observer.work_is_due(step));
  EXPECT_THAT(EvaluatedRun::printed_by([&] { EXPECT_EQ(observer.work(step), Next::stop); }),
              AllOf(HasSubstr("Running evaluation at global_step 2\n"),
                    HasSubstr("Stopping, as eval accuracy at least -1.0 was reached\n"),
                    Not(HasSubstr("Resuming training"))));
  EXPECT_EQ(EvaluatedRun::printed_by([&] { observer.end({.global_step = 2}); }), "")
      << "the last step was evaluated already";
}

TEST(TrainingEvaluation, GoesOnBelowThatAccuracyAndEvaluatesAtTheEnd) {
  EvaluatedRun evaluated(
      with_flag(with_flag(while_training, "--stop_at_top_1_accuracy=1"), "--model=resnet20"));
  evaluated.run.team.start(0);
  TrainingEvaluation observer(evaluated.run.job, evaluated.evaluator(), evaluated.console);
  observer.start({.timed_steps = 4});
  const FinishedStep step{.number = 2, .global_step = 2};
  EXPECT_THAT(EvaluatedRun::printed_by([&] { EXPECT_EQ(observer.work(step), Next::go_on); }),
              testing::EndsWith("Resuming training\n"));
  EXPECT_THAT(EvaluatedRun::printed_by([&] { observer.end({.global_step = 4}); }),
              testing::StartsWith("Running final evaluation at global_step 4\n"));
  EXPECT_EQ(evaluated.result["evaluation"].size(), 2U);
}

TEST(TrainingEvaluation, IsLeftOutOfAnInterruptedRun) {
  EvaluatedRun evaluated;
  evaluated.run.team.start(0);
  TrainingEvaluation observer(evaluated.run.job, evaluated.evaluator(), evaluated.console);
  EXPECT_EQ(EvaluatedRun::printed_by([&] { observer.interrupted({}, "SIGTERM"); }), "");
}

TEST(EvaluationJson, NamesATensorOnlyWhereALossWasNotFinite) {
  EXPECT_FALSE(to_json(EvaluationResult{}).contains("non_finite"));
  EXPECT_EQ(to_json(EvaluationResult{.non_finite = "w"})["non_finite"], "w");
}

}  // namespace
}  // namespace cnn::bench
