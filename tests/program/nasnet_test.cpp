#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/program/program.h"
#include "tests/support/files.h"

namespace cnn::tests {
namespace {

using NasnetWords = std::vector<std::string>;

struct NasnetRun {
  Finished run;
  std::vector<double> losses;
  nlohmann::json result;
};

NasnetRun train_nasnet(const NasnetWords& more) {
  const TemporaryFolder folder;
  NasnetWords words{"--device=cpu",
                    "--model=nasnet",
                    "--data_name=cifar10",
                    "--batch_size=4",
                    "--num_warmup_batches=0",
                    "--display_every=1",
                    "--synthetic_labels=fixed",
                    "--measure_ceilings=false",
                    "--result_json=" + (folder / "r.json")};
  words.insert(words.end(), more.begin(), more.end());
  NasnetRun trained{.run = run_program(words), .losses = {}, .result = {}};
  EXPECT_EQ(trained.run.status, 0) << trained.run.err;
  trained.result = nlohmann::json::parse(read_file(folder / "r.json"));
  for (const nlohmann::json& step : trained.result.at("steps")) {
    trained.losses.push_back(step.at("base_loss").get<double>());
  }
  return trained;
}

TEST(SlowNasnet, LearnsFixedLabels) {
  const NasnetRun run = train_nasnet({"--num_batches=15", "--init_learning_rate=0.001"});
  ASSERT_EQ(run.losses.size(), 15U);
  EXPECT_LT(run.losses.back(), 0.7 * run.losses.front());
}

TEST(SlowNasnet, HasTheSameLossesInLessMemory) {
  const NasnetRun whole = train_nasnet({"--num_batches=2"});
  const NasnetRun less = train_nasnet({"--num_batches=2", "--lms", "--lms_limit=420"});
  const nlohmann::json& plan = less.result.at("plan").at("lms");
  EXPECT_GT(plan.at("recomputed_nodes").get<int>(), 0);
  EXPECT_EQ(less.losses, whole.losses);
}

TEST(SlowNasnet, EndsAResumedRunWithTheBitsOfAnUninterruptedOne) {
  const TemporaryFolder folder;
  const std::string whole = "--train_dir=" + (folder / "whole");
  const std::string parts = "--train_dir=" + (folder / "parts");
  train_nasnet({"--num_batches=2", whole});
  train_nasnet({"--num_batches=1", parts});
  train_nasnet({"--num_batches=2", parts});
  const std::string last = "/model.ckpt-2.safetensors";
  const std::string expected = read_file(folder / ("whole" + last));
  EXPECT_GT(expected.size(), 1000U);
  EXPECT_TRUE(read_file(folder / ("parts" + last)) == expected);
}

// The initial logits of the second classifier are nearly 0, so its loss is ln 11.
TEST(SlowNasnet, AddsTheLossOfItsAuxiliaryHeadToItsOwn) {
  const TemporaryFolder folder;
  const std::string train_dir = "--train_dir=" + (folder / "t");
  const NasnetRun alone = train_nasnet({"--num_batches=1"});
  const NasnetRun both = train_nasnet({"--num_batches=1", "--auxiliary_head", train_dir});
  EXPECT_NEAR(both.losses.at(0) - alone.losses.at(0), 0.4 * 2.3979, 0.01);
  const Finished evaluated = run_program({"--device=cpu", "--model=nasnet", "--data_name=cifar10",
                                          "--eval", "--auxiliary_head", train_dir, "--batch_size=4",
                                          "--num_batches=1", "--measure_ceilings=false"});
  EXPECT_EQ(evaluated.status, 0) << evaluated.err;
  EXPECT_THAT(evaluated.out, testing::HasSubstr("Accuracy @ 1 = "));
}

}  // namespace
}  // namespace cnn::tests
