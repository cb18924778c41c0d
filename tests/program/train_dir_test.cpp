#include <csignal>
#include <filesystem>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/program/program.h"

namespace cnn::tests {
namespace {

using Words = std::vector<std::string>;

Words run_in(const std::string& train_dir, const Words& more) {
  Words flags{
      "--device=cpu",           "--data_name=cifar10",  "--model=alexnet",         "--batch_size=4",
      "--num_warmup_batches=0", "--nomeasure_ceilings", "--train_dir=" + train_dir};
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

TEST(TrainDir, IsLeftAsItIsWhereItsIndexLeadsNowhere) {
  const TemporaryFolder folder;
  std::filesystem::create_directory(folder / "t");
  const std::string index = folder / "t/checkpoint";
  std::filesystem::create_symlink("/nowhere/checkpoint", index);
  const Finished run = run_program(run_in(folder / "t", {"--num_batches=1"}));
  EXPECT_EQ(run.status, 1);
  EXPECT_NE(run.err.find(index + " is a link to /nowhere/checkpoint"), std::string::npos)
      << run.err;
  EXPECT_TRUE(std::filesystem::is_symlink(index));
}

TEST(TrainDir, TellsFromWhichCheckpointARunGoesOn) {
  const TemporaryFolder folder;
  const std::string train_dir = folder / "t", result = folder / "r.json";
  const auto resumed_from = [&](int batches) {
    const Finished run = run_program(
        run_in(train_dir, {"--num_batches=" + std::to_string(batches), "--result_json=" + result}));
    EXPECT_EQ(run.status, 0) << run.err;
    return std::pair(nlohmann::json::parse(read_file(result))["resumed_from"], run.err);
  };
  EXPECT_TRUE(resumed_from(1).first.is_null());
  folder.write("t/checkpoint", "model_checkpoint_path: \"model.ckpt-7.safetensors\"\n");
  const auto [resumed, err] = resumed_from(2);
  EXPECT_EQ(resumed["file"], train_dir + "/model.ckpt-1.safetensors");
  EXPECT_EQ(resumed["global_step"], 1);
  EXPECT_NE(err.find("model.ckpt-7.safetensors, which is not there: fell back to "
                     "model.ckpt-1.safetensors"),
            std::string::npos)
      << err;
}

std::vector<std::string> names_in(const std::string& folder) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() == ".safetensors") {
      names.push_back(entry.path().filename());
    }
  }
  return names;
}

TEST(TrainDir, IsLeftAsItIsByARunThatTrainsNoStep) {
  const TemporaryFolder folder;
  const std::string train_dir = folder / "t", file = train_dir + "/model.ckpt-2.safetensors";
  ASSERT_EQ(run_program(run_in(train_dir, {"--num_batches=2", "--optimizer=momentum"})).status, 0);
  const std::string before = read_file(file);
  for (const Words& more : {Words{"--num_batches=1", "--optimizer=momentum"},
                            Words{"--num_batches=2", "--optimizer=sgd"}}) {
    const Finished run = run_program(run_in(train_dir, more));
    EXPECT_EQ(run.status, 0) << run.err;
    EXPECT_NE(run.err.find("nothing was timed"), std::string::npos) << run.err;
    EXPECT_TRUE(read_file(file) == before) << more.back();
  }
}

TEST(TrainDir, IsReadButNotWrittenByForwardOnlyWhereItHasACheckpoint) {
  const TemporaryFolder folder;
  const std::string train_dir = folder / "t", file = train_dir + "/model.ckpt-2.safetensors";
  ASSERT_EQ(run_program(run_in(train_dir, {"--num_batches=2", "--optimizer=momentum"})).status, 0);
  const std::string before = read_file(file);
  const Finished run = run_program(
      run_in(train_dir, {"--num_batches=4", "--forward_only", "--max_ckpts_to_keep=1"}));
  EXPECT_EQ(run.status, 0) << run.err;
  EXPECT_NE(run.err.find("resumed from " + file), std::string::npos) << run.err;
  EXPECT_EQ(names_in(train_dir), Words{"model.ckpt-2.safetensors"});
  EXPECT_TRUE(read_file(file) == before);
}

TEST(TrainDir, OfForwardOnlyHasNoSlotsAndATrainingFromItSaysSo) {
  const TemporaryFolder folder;
  const std::string train_dir = folder / "t";
  ASSERT_EQ(run_program(run_in(train_dir, {"--num_batches=1", "--forward_only"})).status, 0);
  EXPECT_EQ(names_in(train_dir), Words{"model.ckpt-1.safetensors"});
  const Finished run = run_program(run_in(train_dir, {"--num_batches=2", "--optimizer=momentum"}));
  EXPECT_NE(run.err.find("model.ckpt-1.safetensors holds no slots of the optimizer (Momentum)"),
            std::string::npos)
      << run.err;
}

TEST(TrainDir, IsRefusedBeforeTheFirstStepIfItIsAFile) {
  const TemporaryFolder folder;
  folder.write("file", "x");
  const Finished run = run_program(run_in(folder / "file", {"--num_batches=1"}));
  EXPECT_EQ(run.status, 1);
  EXPECT_NE(run.err.find("--train_dir"), std::string::npos) << run.err;
  EXPECT_TRUE(run.step_lines().empty());
}

}  // namespace
}  // namespace cnn::tests
