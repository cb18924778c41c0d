#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/program/program.h"

namespace cnn::tests {
namespace {

using Words = std::vector<std::string>;

Words small_run(const std::string& train_dir) {
  return {"--device=cpu",      "--data_name=cifar10",  "--model=alexnet",
          "--batch_size=4",    "--num_batches=7",      "--num_warmup_batches=0",
          "--display_every=1", "--nomeasure_ceilings", "--train_dir=" + train_dir};
}

std::size_t count(const Finished& run, const std::string& what) {
  std::size_t found = 0;
  for (const std::string& line : run.lines()) {
    found += line.find(what) != std::string::npos ? 1 : 0;
  }
  return found;
}

TEST(Evaluation, PrintsOneAccuracyLineOfTwelveWords) {
  const TemporaryFolder folder;
  Words flags = small_run(folder / "t");
  ASSERT_EQ(run_program(flags).status, 0);
  flags.push_back("--eval");
  flags.push_back("--num_eval_batches=3");
  flags.push_back("--num_batches=0");
  const Finished run = run_program(flags);
  ASSERT_EQ(run.status, 0) << run.err;
  EXPECT_NE(run.out.find("Successfully loaded model from " + (folder / "t")), std::string::npos);
  EXPECT_EQ(count(run, " examples/sec"), 3U);
  ASSERT_EQ(count(run, "Accuracy @ 1"), 1U) << run.out;
  for (const std::string& line : run.lines()) {
    if (line.starts_with("Accuracy @ 1")) {
      EXPECT_EQ(words_of(line).size(), 12U) << line;
      EXPECT_TRUE(line.ends_with("[12 examples]")) << line;
    }
  }
}

// Such flags ended an evaluation with an error of the C++ library.
TEST(Evaluation, RunsBesideFlagsThatLookAtStepsOfTraining) {
  const TemporaryFolder folder;
  Words flags = small_run(folder / "t");
  ASSERT_EQ(run_program(flags).status, 0);
  for (const std::string& flag :
       {"--hash_file=" + (folder / "h"), std::string("--check_finite_step=1"),
        "--tfprof_file=" + (folder / "p"), std::string("--lms")}) {
    Words words = flags;
    words.insert(words.end(), {"--eval", "--num_eval_batches=1", "--num_batches=0", flag});
    const Finished run = run_program(words);
    EXPECT_EQ(run.status, 0) << run.err;
    EXPECT_EQ(count(run, "Accuracy @ 1"), 1U) << run.out;
    EXPECT_NE(run.err.find(flag.substr(0, flag.find('='))), std::string::npos)
        << "a notice names " << flag << "\n"
        << run.err;
  }
}

TEST(Evaluation, EndsNormallyWithoutACheckpoint) {
  const TemporaryFolder folder;
  Words flags = small_run(folder / "");
  flags.push_back("--eval");
  const Finished run = run_program(flags);
  EXPECT_EQ(run.status, 0) << run.err;
  EXPECT_NE(run.out.find("Checkpoint not found in "), std::string::npos);
}

TEST(Evaluation, DuringTrainingRunsAtTheStepsAskedForAndAtTheEnd) {
  const TemporaryFolder folder;
  for (const char* when : {"--eval_during_training_every_n_steps=2",
                           "--eval_during_training_at_specified_steps=2,3,5,7,1000"}) {
    Words flags = small_run(folder / when);
    flags.push_back(when);
    flags.push_back("--num_eval_batches=2");
    const Finished run = run_program(flags);
    ASSERT_EQ(run.status, 0) << run.err;
    EXPECT_EQ(run.step_lines().size(), 7U);
    EXPECT_EQ(count(run, " examples/sec"), 8U) << run.out;
    EXPECT_EQ(count(run, "Running evaluation at global_step"), 3U);
    EXPECT_EQ(count(run, "Resuming training"), 3U);
    EXPECT_EQ(count(run, "Done with training"), 1U);
    EXPECT_EQ(count(run, "Running final evaluation at global_step 7"), 1U);
    EXPECT_EQ(count(run, "total images/sec"), 0U);
  }
}

TEST(Evaluation, StopsTrainingOnceTheAccuracyIsReached) {
  const TemporaryFolder folder;
  Words flags = small_run(folder / "t");
  flags.push_back("--eval_during_training_every_n_steps=2");
  flags.push_back("--num_eval_batches=1");
  flags.push_back("--stop_at_top_1_accuracy=-1");
  const Finished run = run_program(flags);
  ASSERT_EQ(run.status, 0) << run.err;
  EXPECT_EQ(run.step_lines().size(), 2U);
  EXPECT_EQ(count(run, "Stopping, as eval accuracy at least"), 1U);
  EXPECT_EQ(count(run, "Running final evaluation"), 0U);
}

TEST(Evaluation, ForwardOnlyPrintsNoLossButAccuracies) {
  const Finished run = run_program({"--device=cpu", "--data_name=cifar10", "--model=resnet20",
                                    "--batch_size=4", "--num_batches=2", "--num_warmup_batches=0",
                                    "--display_every=1", "--forward_only", "--nomeasure_ceilings"});
  ASSERT_EQ(run.status, 0) << run.err;
  ASSERT_EQ(run.step_lines().size(), 2U);
  const std::vector<std::string> words = words_of(run.step_lines().front());
  ASSERT_EQ(words.size(), 11U);
  EXPECT_EQ(words[8], "0.000");
}

TEST(Evaluation, FreezingChangesNoAccuracy) {
  std::vector<std::string> columns;
  for (const char* freeze : {"--nofreeze_when_forward_only", "--freeze_when_forward_only"}) {
    const Finished run =
        run_program({"--device=cpu", "--data_name=cifar10", "--model=resnet20", "--batch_size=64",
                     "--num_batches=2", "--display_every=1", "--num_warmup_batches=0",
                     "--forward_only", "--nomeasure_ceilings", freeze});
    ASSERT_EQ(run.step_lines().size(), 2U) << run.err;
    const std::vector<std::string> words = words_of(run.step_lines().back());
    columns.push_back(words[9] + " " + words[10]);
  }
  EXPECT_EQ(columns[0], columns[1]);
}

}  // namespace
}  // namespace cnn::tests
