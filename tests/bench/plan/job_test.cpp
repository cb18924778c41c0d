#include "bench/plan/job.h"

#include <filesystem>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <string>
#include <vector>

#include "bench/flags/flags.h"
#include "bench/ranks/rank_context.h"
#include "tests/support/error_of.h"
#include "tests/support/files.h"

namespace cnn::bench {
namespace {

using testing::HasSubstr;

// The job of these flags in a run of `processes` processes.
struct JobOfFlags {
  explicit JobOfFlags(std::vector<std::string> flags, int processes = 1) {
    flags.insert(flags.begin(), {"--device=cpu", "--data_name=cifar10", "--model=resnet20"});
    config = parse_flags(flags, {}).config;
    RankContext context = only_rank(backend);
    context.ranks = processes;
    job = make_job(config, context);
  }

  Config config;
  Backend backend;
  Job job;
};

std::string refusal_of_job(const std::vector<std::string>& flags) {
  return tests::error_of([&] { JobOfFlags run(flags); });
}

TEST(Job, DividesItsExamplesOverAllDevicesOfAllProcesses) {
  const JobOfFlags run({"--batch_size=4", "--num_gpus=2", "--variable_update=replicated"}, 3);
  EXPECT_EQ(run.job.ranks, 6);
  EXPECT_EQ(run.job.batch.per_device, 4);
  EXPECT_EQ(run.job.batch.global, 24);
  EXPECT_EQ(run.job.eval_batch.global, 24);
}

TEST(Job, HasTheSizesOfTheModelWhereFlagsGiveNone) {
  const JobOfFlags run({});
  EXPECT_EQ(run.job.batch.per_device, run.job.model->batch_size);
  EXPECT_EQ(run.job.image_size, 32);
  EXPECT_EQ(run.job.train_examples, 50'000);
  EXPECT_EQ(run.job.eval_examples, 10'000);
  EXPECT_EQ(run.job.length.batches, 100);
  EXPECT_EQ(run.job.warm_up, 10);
  EXPECT_EQ(run.job.train_data, nullptr) << "synthetic";
}

TEST(Job, CountsEpochsInTheExamplesThatAStepTakes) {
  const std::vector<std::string> epoch{"--batch_size=50", "--num_epochs=1", "--num_gpus=2"};
  std::vector<std::string> together = epoch, apart = epoch;
  together.emplace_back("--variable_update=replicated");
  apart.emplace_back("--variable_update=independent");
  EXPECT_EQ(JobOfFlags(together).job.length.batches, 500);
  EXPECT_EQ(JobOfFlags(apart).job.length.batches, 1000) << "each copy sees all examples";
}

TEST(Job, EvaluatesTheValidationSetInBatchesOfItsOwn) {
  const JobOfFlags run({"--eval", "--train_dir=.", "--eval_batch_size=100", "--num_eval_epochs=1"});
  EXPECT_TRUE(run.job.evaluates());
  EXPECT_FALSE(run.job.trains());
  EXPECT_EQ(run.job.eval_length.batches, 100);
  EXPECT_EQ(run.job.batch_flag(), "--eval_batch_size");
  EXPECT_EQ(JobOfFlags({"--eval", "--train_dir=."}).job.batch_flag(), "--batch_size");
  const JobOfFlags beside(
      {"--eval_during_training_every_n_steps=2", "--batch_size=8", "--eval_batch_size=100"});
  EXPECT_EQ(beside.job.batch_flag(), "--batch_size");
  EXPECT_EQ(beside.job.eval_batch_flag(), "--eval_batch_size");
}

TEST(Job, HasNoEndInStepsWithAMinimumTime) {
  const JobOfFlags run({"--min_time=2.5"});
  EXPECT_EQ(run.job.min_time, 2.5);
  EXPECT_EQ(run.job.length.batches, 2'000'000'000) << "the number still fits 32 bits";
}

TEST(Job, AddsWeightDecayToTheTotalLoss) {
  const JobOfFlags total({"--weight_decay=0.5"});
  const StepValues values{.base_loss = 2, .l2 = 8};
  EXPECT_EQ(total.job.total_loss(values), 6);
  EXPECT_EQ(total.job.reported_loss(values), 6);
  const JobOfFlags base({"--weight_decay=0.5", "--loss_type_to_report=base_loss"});
  EXPECT_EQ(base.job.reported_loss(values), 2);
}

TEST(Job, ShowsTheAccuraciesOfARunForwardOnly) {
  EXPECT_FALSE(JobOfFlags({}).job.shows_accuracies());
  EXPECT_TRUE(JobOfFlags({"--forward_only"}).job.shows_accuracies());
  EXPECT_TRUE(JobOfFlags({"--print_training_accuracy"}).job.shows_accuracies());
}

TEST(Job, KeepsCheckpointsOfARunThatHasATrainDirAndMayChangeIt) {
  const tests::TemporaryFolder folder;
  const std::string train_dir = "--train_dir=" + folder.path().string();
  EXPECT_FALSE(JobOfFlags({}).job.keeps_checkpoints());
  EXPECT_TRUE(JobOfFlags({train_dir}).job.keeps_checkpoints());
  EXPECT_FALSE(JobOfFlags({train_dir, "--eval"}).job.keeps_checkpoints());
  EXPECT_TRUE(JobOfFlags({train_dir, "--freeze_when_forward_only"}).job.keeps_checkpoints())
      << "the flag acts with --forward_only only";
}

std::string in_four_bytes(int number) {
  return {0, 0, static_cast<char>(number / 256), static_cast<char>(number % 256)};
}

void write_mnist_of_two(const tests::TemporaryFolder& folder, const std::string& part) {
  folder.write(part + "-images-idx3-ubyte", in_four_bytes(0x803) + in_four_bytes(2) +
                                                in_four_bytes(28) + in_four_bytes(28) +
                                                std::string(std::size_t{2} * 28 * 28, 'x'));
  folder.write(part + "-labels-idx1-ubyte",
               in_four_bytes(0x801) + in_four_bytes(2) + std::string("\1\2"));
}

std::vector<std::string> on_mnist(const tests::TemporaryFolder& folder,
                                  const std::vector<std::string>& more = {}) {
  std::vector<std::string> flags{"--data_name=mnist", "--model=trivial",
                                 "--data_dir=" + folder.path().string()};
  flags.insert(flags.end(), more.begin(), more.end());
  return flags;
}

TEST(Job, OpensTheDataSetsThatItsModeNeeds) {
  const tests::TemporaryFolder folder;
  write_mnist_of_two(folder, "train");
  const JobOfFlags training(on_mnist(folder));
  ASSERT_NE(training.job.train_data, nullptr);
  EXPECT_EQ(training.job.eval_data, nullptr);
  EXPECT_EQ(training.job.train_examples, 2);
  EXPECT_FALSE(training.job.input.synthetic);
  EXPECT_EQ(training.job.input.image_type, DataType::u8);
  EXPECT_THAT(refusal_of_job(on_mnist(folder, {"--eval", "--train_dir=."})), HasSubstr("t10k"))
      << "there is no validation set";
  write_mnist_of_two(folder, "t10k");
  const JobOfFlags evaluation(on_mnist(folder, {"--eval", "--train_dir=."}));
  EXPECT_EQ(evaluation.job.train_data, nullptr);
  EXPECT_EQ(evaluation.job.eval_examples, 2);
}

TEST(Job, RefusesImagesThatDoNotFitTheModel) {
  const tests::TemporaryFolder folder;
  write_mnist_of_two(folder, "train");
  EXPECT_THAT(refusal_of_job(on_mnist(folder, {"--image_size=32"})),
              HasSubstr("images are 28x28x1, but trivial at --image_size=32 takes 32x32x1"));
}

TEST(Job, RefusesAFolderWithoutData) {
  const tests::TemporaryFolder folder;
  EXPECT_EQ(refusal_of_job(on_mnist(folder)),
            "--data_dir=" + folder.path().string() +
                ": the folder is empty; leave the flag out for synthetic images");
  EXPECT_EQ(refusal_of_job({"--data_dir=/no/such/folder"}),
            "--data_dir=/no/such/folder: there is no such folder or file; leave the flag out for "
            "synthetic images");
}

TEST(Job, RefusesAModelThatTheDataSetDoesNotHave) {
  EXPECT_THAT(refusal_of_job({"--model=vgg16"}), HasSubstr("vgg16"));
}

}  // namespace
}  // namespace cnn::bench
