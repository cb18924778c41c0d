#include "bench/flags/sizes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <set>

#include "runtime/error.h"

namespace cnn::bench {
namespace {

using testing::ElementsAre;

constexpr std::int64_t imagenet = 1281167;
constexpr std::int64_t imagenet_validation = 50000;

TEST(RunLength, IsTheOriginals) {
  EXPECT_EQ(run_length({}, 10, 100).batches, 100);
  EXPECT_DOUBLE_EQ(run_length({}, 10, 100).epochs, 10.0);
  EXPECT_EQ(run_length({.batches = 21, .epochs = {}}, 25, 50).batches, 21);
  EXPECT_DOUBLE_EQ(run_length({.batches = 21, .epochs = {}}, 25, 50).epochs, 10.5);
  EXPECT_EQ(run_length({.batches = {}, .epochs = 3}, 2, 3).batches, 5);
  EXPECT_DOUBLE_EQ(run_length({.batches = {}, .epochs = 3}, 2, 3).epochs, 10.0 / 3);
  EXPECT_EQ(run_length({.batches = {}, .epochs = 4}, 2, 3).batches, 6);
  EXPECT_DOUBLE_EQ(run_length({.batches = {}, .epochs = 4}, 2, 3).epochs, 4.0);
  EXPECT_THROW(run_length({.batches = 100, .epochs = 100}, 1, 1), Error);
}

TEST(RunLength, TakesZeroAsUnset) {
  EXPECT_EQ(run_length({.batches = 0, .epochs = {}}, 10, 100).batches, 100);
  EXPECT_EQ(run_length({.batches = 0, .epochs = 2}, 10, 100).batches, 20);
}

TEST(RunLength, RefusesWhatCannotBeCounted) {
  EXPECT_THROW(run_length({.batches = {}, .epochs = 1e18}, 1, imagenet), Error);
  EXPECT_THROW(run_length({}, 0, 100), Error);
  EXPECT_THROW(run_length({}, 1, 0), Error);
}

TEST(EvalLength, UsesItsOwnFlagsFirst) {
  Config config;
  config.size.length.batches = 30;
  config.eval.length.epochs = 100.0 / 50000;
  config.eval.every_n_steps = 1;
  const Length training = run_length(config.size.length, 1, imagenet);
  EXPECT_EQ(training.batches, 30);
  EXPECT_DOUBLE_EQ(training.epochs, 30.0 / imagenet);
  const Length evaluation = eval_length(config, 2, imagenet_validation);
  EXPECT_EQ(evaluation.batches, 50);
  EXPECT_DOUBLE_EQ(evaluation.epochs, 100.0 / 50000);
}

TEST(EvalLength, IsThatOfTheTrainingOtherwise) {
  Config config;
  EXPECT_EQ(eval_length(config, 2, 50).batches, 100);
  config.size.length.batches = 30;
  EXPECT_EQ(eval_length(config, 2, 50).batches, 30);
  EXPECT_DOUBLE_EQ(eval_length(config, 2, 50).epochs, 1.2);
}

TEST(WarmUp, DefaultsToTenOrMoreForAutotuning) {
  EXPECT_EQ(warm_up_batches({}, {}), 10);
  EXPECT_EQ(warm_up_batches({}, 1), 10);
  EXPECT_EQ(warm_up_batches({}, 3), 45);
  EXPECT_EQ(warm_up_batches({}, 0), 10);
  EXPECT_EQ(warm_up_batches(0, 3), 0);
  EXPECT_EQ(warm_up_batches(7, {}), 7);
}

TEST(WarmUp, RoundsUpToWholeGroups) {
  EXPECT_EQ(round_up_warm_up(5, 4, 1), 8);
  EXPECT_EQ(round_up_warm_up(5, 4, 2), 7);
  EXPECT_EQ(round_up_warm_up(5, 4, 0), 5);
  EXPECT_EQ(round_up_warm_up(10, 1, 1), 10);
  EXPECT_EQ(round_up_warm_up(0, 4, 0), 1);
  EXPECT_EQ(round_up_warm_up(0, 4, 1), 0);
}

TEST(WarmUp, KnowsTheStagedBatches) {
  Config config;
  config.device = DeviceKind::cpu;
  EXPECT_EQ(staging_operations(config), 1);
  config.data.dir = "/data";
  EXPECT_EQ(staging_operations(config), 1);  // only GPUs prefetch batches
  config.device = DeviceKind::gpu;
  EXPECT_EQ(staging_operations(config), 0);
  config.data.use_prefetch = false;
  EXPECT_EQ(staging_operations(config), 1);
}

TEST(PerDeviceBatch, IsTheFlagOrTheModels) {
  EXPECT_EQ(per_device_batch(8, 64), 8);
  EXPECT_EQ(per_device_batch(0, 64), 64);
  EXPECT_EQ(per_device_batch(-1, 64), 64);
}

TEST(Modes, FollowTheFlags) {
  Config config;
  EXPECT_EQ(mode_name(mode_of(config)), "training");
  config.eval.at_steps = {3};
  EXPECT_EQ(mode_name(mode_of(config)), "training + evaluation");
  config = Config{};
  config.mode.eval = true;
  EXPECT_EQ(mode_name(mode_of(config)), "evaluation");
  config = Config{};
  config.mode.forward_only = true;
  EXPECT_EQ(mode_name(mode_of(config)), "forward only");
}

// Returns the steps at which a training of 7 batches of 4 examples evaluates.
std::set<std::int64_t> evaluations(const Config& config) {
  const Length length{.batches = 7, .epochs = 7 * 4.0 / imagenet};
  const EvalSchedule schedule = eval_schedule(config, length, 4, imagenet);
  std::set<std::int64_t> steps;
  for (std::int64_t step = 0; step <= 7; ++step) {
    if (schedule.due(step, 7)) {
      steps.insert(step);
    }
  }
  return steps;
}

TEST(EvalSchedule, PausesEveryFewStepsButNotAtTheEnd) {
  Config config;
  config.eval.every_n_steps = 2;
  EXPECT_THAT(evaluations(config), ElementsAre(2, 4, 6));
  config.eval.every_n_steps = 7;
  EXPECT_THAT(evaluations(config), ElementsAre());
}

TEST(EvalSchedule, TurnsEpochsIntoSteps) {
  Config config;
  config.eval.every_n_epochs = 2 * 4.0 / imagenet;
  EXPECT_THAT(evaluations(config), ElementsAre(2, 4, 6));
  config.eval.every_n_epochs = 1e-12;
  EXPECT_THAT(evaluations(config), ElementsAre(1, 2, 3, 4, 5, 6));
  config.eval.every_n_epochs = 1.5 * 4.0 / imagenet;  // at 1.5, 3, 4.5 and 6 steps
  EXPECT_THAT(evaluations(config), ElementsAre(2, 3, 5, 6));
}

// A set of all multiples would take minutes and tens of GiB. The expected steps are those of the
// original's formula for the first multiples.
TEST(EvalSchedule, TakesAnyNumberOfEpochsBetweenEvaluations) {
  constexpr std::int64_t batch = 2, steps = 3000;
  const Length length{.batches = 2'000'000'000, .epochs = 2e9 * batch / imagenet};
  for (const double interval : {3.0 / imagenet, 7.7 / imagenet, 100.0 / imagenet}) {
    Config config;
    config.eval.every_n_epochs = interval;
    const EvalSchedule schedule = eval_schedule(config, length, batch, imagenet);
    EXPECT_TRUE(schedule.at.empty());
    std::set<std::int64_t> expected, due;
    for (std::int64_t i = 1; i <= 2 * steps; ++i) {
      const double examples = static_cast<double>(i) * interval * imagenet;
      expected.insert(static_cast<std::int64_t>(examples + batch - 1) / batch);
    }
    for (std::int64_t step = 1; step <= steps; ++step) {
      if (schedule.due(step, length.batches)) {
        due.insert(step);
      }
    }
    expected.erase(expected.upper_bound(steps), expected.end());
    EXPECT_EQ(due, expected) << interval;
  }
}

TEST(EvalSchedule, TakesListsOfStepsAndEpochs) {
  Config config;
  config.eval.at_steps = {2, 3, 5, 7, 1000};
  EXPECT_THAT(evaluations(config), ElementsAre(2, 3, 5));
  config = Config{};
  for (const int step : {2, 3, 5, 7, 1000}) {
    config.eval.at_epochs.push_back(step * 4.0 / imagenet);
  }
  EXPECT_THAT(evaluations(config), ElementsAre(2, 3, 5));
}

TEST(EvalSchedule, IsEmptyWithoutFlags) { EXPECT_THAT(evaluations(Config{}), ElementsAre()); }

}  // namespace
}  // namespace cnn::bench
