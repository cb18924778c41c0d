#include "bench/session/input.h"

#include <cstdint>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "bench/ranks/interruption.h"
#include "bench/ranks/rank_context.h"
#include "data/catalog.h"
#include "runtime/cpu/device.h"

namespace cnn::bench {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// A data set of twelve images of one pixel whose labels are their positions.
class NumberedExamples final : public data::Dataset {
 public:
  std::int64_t size() const override { return 12; }
  data::ImageFormat format() const override { return {.height = 1, .width = 1, .channels = 1}; }
  int classes() const override { return 12; }
  void read(std::int64_t index, const data::Example& into) const override {
    into.image.front() = std::byte{0};
    *into.label = static_cast<std::int32_t>(index);
  }
  // Between two readings an hour of decoding has passed.
  data::InputStatistics statistics() const override {
    return {.decode_seconds = 3600.0 * ++readings_};
  }

 private:
  mutable int readings_ = 0;
};

// A run on image files with two examples per step and device.
struct FedRun {
  explicit FedRun(Mode mode, const char* set = "imagenet") {
    config.data.set = &data::find(set);
    backend.device = std::make_unique<CpuDevice>();
    job.config = &config;
    job.mode = mode;
    job.train_data = std::make_unique<NumberedExamples>();
    job.eval_data = std::make_unique<NumberedExamples>();
    resize(1);
  }
  void resize(int ranks) {
    job.ranks = ranks;
    job.batch = job.eval_batch = {.per_device = 2, .global = std::int64_t{2} * ranks};
  }
  RankContext context(int rank = 0, int ranks = 1) const {
    RankContext context = only_rank(backend);
    context.rank = rank;
    context.ranks = ranks;
    return context;
  }
  // Returns the labels of the first two batches of one of two ranks.
  std::vector<int> labels(Phase phase, int rank, std::int64_t first_step = 0) {
    resize(2);
    const auto feeder = make_feeder(job, context(rank, 2), phase, first_step);
    std::vector<int> labels;
    for (int batch = 0; batch < 2; ++batch) {
      const data::Batch& next = feeder->next();
      labels.insert(labels.end(), next.labels.begin(), next.labels.end());
    }
    return labels;
  }

  Config config;
  Backend backend;
  Job job;
};

TEST(InputThreads, AreAsManyAsTheFlagSays) {
  FedRun run(Mode::training);
  run.config.data.threads = 3;
  EXPECT_EQ(input_threads(run.job, run.context()), 3);
}

TEST(InputThreads, AreOneForExamplesInMemory) {
  const FedRun run(Mode::training, "cifar10");
  EXPECT_EQ(input_threads(run.job, run.context()), 1);
}

TEST(InputThreads, AreHalfOfThoseThatComputeOnAProcessor) {
  FedRun run(Mode::training);
  run.config.data.threads = 0;  // stands for a flag that is not given
  run.backend.processors.threads = 9;
  EXPECT_EQ(input_threads(run.job, run.context()), 4);
  run.backend.processors.threads = 1;
  EXPECT_EQ(input_threads(run.job, run.context()), 1);
}

TEST(InputThreads, AreAllOfTheHostWhereNothingComputes) {
  FedRun run(Mode::training);
  run.config.data.input_only = true;
  run.backend.processors.threads = 2;
  const auto cores = static_cast<int>(std::thread::hardware_concurrency());
  EXPECT_EQ(input_threads(run.job, run.context()), cores);
  run.config.num_gpus = 1000;
  EXPECT_EQ(input_threads(run.job, run.context()), 1);
}

TEST(InputThreads, BesideAGpuAreAtLeastOne) {
  const FedRun run(Mode::training);
  EXPECT_EQ(input_threads(run.job, run.context(0, 1000)), 1);
}

TEST(Feeders, AreAbsentForSyntheticInput) {
  FedRun run(Mode::training);
  run.job.train_data.reset();
  EXPECT_EQ(make_feeder(run.job, run.context(), Phase::training, 0), nullptr);
}

TEST(Feeders, DivideEachGlobalBatchAmongRanks) {
  FedRun run(Mode::forward_only);
  EXPECT_THAT(run.labels(Phase::forward_only, 0), ElementsAre(0, 1, 4, 5));
  EXPECT_THAT(run.labels(Phase::forward_only, 1), ElementsAre(2, 3, 6, 7));
}

TEST(Feeders, BeginWithTheExamplesOfTheGlobalStep) {
  FedRun run(Mode::forward_only);
  EXPECT_THAT(run.labels(Phase::forward_only, 0, 1), ElementsAre(4, 5, 8, 9));
}

TEST(Feeders, GiveCopiesOfATrainingTheSameExamplesAndDivideTheirEvaluation) {
  FedRun run(Mode::training);
  EXPECT_NE(run.labels(Phase::training, 0), run.labels(Phase::training, 1));
  run.config.variable_update = VariableUpdate::independent;
  EXPECT_EQ(run.labels(Phase::training, 0), run.labels(Phase::training, 1));
  EXPECT_THAT(run.labels(Phase::evaluation, 1), ElementsAre(2, 3, 6, 7));
}

TEST(Feeders, GiveRanksThatAreComparedTheSameExamples) {
  FedRun run(Mode::training);
  run.config.variable_update = VariableUpdate::independent;
  run.config.comm.check = CommCheck::majority;
  for (const Phase phase : {Phase::training, Phase::evaluation}) {
    EXPECT_EQ(run.labels(phase, 0), run.labels(phase, 1));
  }
}

// NOLINTNEXTLINE(bugprone-exception-escape): moving or destroying a Json does not throw.
struct ReportedInput {
  std::string out, err;
  Json result;
};

ReportedInput reported(FedRun& run) {
  run.config.data.input_only = true;
  run.config.data.threads = 1;
  Console console;
  const Interruption interruption(console);
  ReportedInput reported;
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  report_input(run.job, run.context(), interruption, console, reported.result);
  reported.out = testing::internal::GetCapturedStdout();
  reported.err = testing::internal::GetCapturedStderr();
  return reported;
}

TEST(ReportInput, CountsTheImagesOfTheTimedStepsOfAllDevices) {
  FedRun run(Mode::training);
  run.resize(2);
  run.config.num_gpus = 2;
  run.job.warm_up = 3;
  run.job.length.batches = 5;
  const ReportedInput input = reported(run);
  EXPECT_THAT(input.out, testing::StartsWith("Running warm up\nDone warm up\n---"));
  EXPECT_THAT(input.out, HasSubstr("total images/sec: "));
  EXPECT_THAT(input.err, HasSubstr("to read faster: "));
  EXPECT_EQ(input.result["input"]["images"], 5 * 4);
  EXPECT_EQ(input.result["input"]["threads"], 2);
}

TEST(ReportInput, SaysThatABriefIntervalOnlyTookBatchesThatWereReady) {
  FedRun run(Mode::training);
  run.job.warm_up = 3;
  run.job.length.batches = 2;
  const ReportedInput brief = reported(run);
  EXPECT_THAT(brief.err, HasSubstr("input: the interval took 2 batches, and up to 2 were ready "
                                   "before it: this speed is none of reading; raise "
                                   "--num_batches\n"));
  EXPECT_THAT(brief.err, testing::Not(HasSubstr("to read faster")));
  run.job.length.batches = 3;
  EXPECT_THAT(reported(run).err, HasSubstr("to read faster"));
  run.config.data.ready_batches = 7;
  EXPECT_THAT(reported(run).err, HasSubstr("took 3 batches, and up to 8 were ready"));
}

TEST(ReportInput, ReadsAsManyBatchesAsAnEvaluationHas) {
  FedRun run(Mode::evaluation);
  run.job.train_data.reset();
  run.job.eval_length.batches = 3;
  run.job.length.batches = 100;
  EXPECT_EQ(reported(run).result["input"]["images"], 3 * 2);
}

TEST(ReportInput, EndsWhenItsTimeIsOver) {
  FedRun run(Mode::training);
  run.job.length.batches = 2'000'000'000;
  run.job.min_time = 1e-3;
  const ReportedInput input = reported(run);
  EXPECT_GT(input.result["input"]["images"], 0);
  EXPECT_GE(input.result["input"]["seconds"], 1e-3);
}

}  // namespace
}  // namespace cnn::bench
