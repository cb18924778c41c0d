#include <csignal>
#include <gtest/gtest.h>

#include "tests/program/program.h"

namespace cnn::tests {
namespace {

using Words = std::vector<std::string>;

Words run_in(const std::string& train_dir, const Words& more) {
  Words flags{"--device=cpu",   "--data_name=cifar10",    "--model=alexnet",
              "--batch_size=4", "--num_warmup_batches=0", "--train_dir=" + train_dir};
  flags.insert(flags.end(), more.begin(), more.end());
  return flags;
}

TEST(TrainDir, IsRefusedToASecondTrainingButNotToAnEvaluation) {
  const TemporaryFolder folder;
  const std::string train_dir = folder / "t";
  Finished second, evaluation;
  const auto first_has_saved = [&](const Finished& first) {
    if (first.out.find("\n2\timages/sec") == std::string::npos) {
      return false;
    }
    second = run_program(run_in(train_dir, {"--num_batches=1"}));
    evaluation = run_program(run_in(train_dir, {"--eval", "--num_batches=1"}));
    return true;
  };
  const Finished first = run_and_signal(
      run_in(train_dir, {"--num_batches=1000000", "--save_model_steps=1", "--display_every=1"}),
      first_has_saved, {SIGTERM});
  EXPECT_EQ(first.status, 128 + SIGTERM) << first.err;
  EXPECT_EQ(second.status, 1);
  EXPECT_NE(second.err.find("is training there"), std::string::npos) << second.err;
  EXPECT_TRUE(second.step_lines().empty());
  EXPECT_EQ(evaluation.status, 0) << evaluation.err;
}

TEST(TrainDir, IsUsedAgainOnceTheFirstTrainingHasEnded) {
  const TemporaryFolder folder;
  for (int run = 0; run < 2; ++run) {
    EXPECT_EQ(run_program(run_in(folder / "t", {"--num_batches=1"})).status, 0);
  }
}

TEST(TrainDir, ThatIsAFileIsRefusedBeforeTheFirstStep) {
  const TemporaryFolder folder;
  folder.write("file", "x");
  const Finished run = run_program(run_in(folder / "file", {"--num_batches=1"}));
  EXPECT_EQ(run.status, 1);
  EXPECT_NE(run.err.find("--train_dir"), std::string::npos) << run.err;
  EXPECT_TRUE(run.step_lines().empty());
}

}  // namespace
}  // namespace cnn::tests
