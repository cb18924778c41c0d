#include "bench/plan/training_ranks.h"

#include <gtest/gtest.h>

#include "bench/plan/job.h"

namespace cnn::bench {
namespace {

struct JobOfRanks {
  explicit JobOfRanks(VariableUpdate update, Mode mode = Mode::training) {
    config.variable_update = update;
    job.config = &config;
    job.mode = mode;
    job.ranks = 6;
    job.batch = {.per_device = 4, .global = 24};
  }
  Config config;
  Job job;
};

TEST(TrainingRanks, AreAllThatTrainOneModel) {
  const JobOfRanks run(VariableUpdate::replicated);
  EXPECT_EQ(training_ranks(run.job), 6);
  EXPECT_EQ(examples_per_step(run.job), 24);
}

TEST(TrainingRanks, AreOneForIndependentCopies) {
  for (const Mode mode : {Mode::training, Mode::training_and_evaluation}) {
    const JobOfRanks run(VariableUpdate::independent, mode);
    EXPECT_EQ(training_ranks(run.job), 1);
    EXPECT_EQ(examples_per_step(run.job), 4);
  }
}

TEST(TrainingRanks, DivideTheExamplesOfARunThatDoesNotTrain) {
  for (const Mode mode : {Mode::forward_only, Mode::evaluation}) {
    EXPECT_EQ(examples_per_step(JobOfRanks(VariableUpdate::independent, mode).job), 24);
  }
}

}  // namespace
}  // namespace cnn::bench
