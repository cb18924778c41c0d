// Runs the unchanged program on the emulated GPU and tests the choices and measurements that the
// CUDA backend makes by itself, including choices that fail.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "tests/program/program.h"
#include "tests/support/files.h"

namespace cnn::tests {
namespace {

using Words = std::vector<std::string>;

// Returns the stderr lines that contain these words.
std::vector<std::string> lines_with(const Finished& run, const std::string& words) {
  std::vector<std::string> found;
  std::istringstream lines(run.err);
  for (std::string line; std::getline(lines, line);) {
    if (line.find(words) != std::string::npos) {
      found.push_back(line);
    }
  }
  return found;
}

const Words resnet_in_f16{"--device=gpu",
                          "--data_name=cifar10",
                          "--model=resnet20",
                          "--precision=fp16",
                          "--batch_size=2",
                          "--num_batches=4",
                          "--display_every=1",
                          "--num_warmup_batches=0",
                          "--tf_random_seed=7",
                          "--nomeasure_ceilings",
                          "--fusion=bn",

                          "--notune"};

// Returns the printed losses without the speeds.
Words losses_in(const Finished& run) {
  Words losses;
  for (const std::string& line : run.step_lines()) {
    losses.push_back(line.substr(line.rfind('\t')));
  }
  return losses;
}

Finished run_emulated(const Words& flags) {
  const Environment driver("LD_LIBRARY_PATH", CNN_EMULATED_FOLDER);
  return run_program(flags);
}

TEST(EmulatedGpuChoices, GoesOnWithoutAGraphWhereAStepCannotBeCaptured) {
  const Finished whole = run_emulated(resnet_in_f16);
  ASSERT_EQ(whole.status, 0) << whole.err;
  const Environment waiting("CNN_EMULATED_WAITING_ENGINES", "1");
  const Finished run = run_emulated(resnet_in_f16);
  ASSERT_EQ(run.status, 0) << run.err;
  EXPECT_EQ(losses_in(run), losses_in(whole));
  EXPECT_THAT(lines_with(run, "not replayed from a CUDA graph"),
              testing::ElementsAre(testing::HasSubstr("the engine cannot wait for its stream")));
  EXPECT_THAT(lines_with(whole, "not replayed"), testing::IsEmpty());
}

TEST(EmulatedGpuChoices, TakesOtherEnginesWhereSomeDoNotRun) {
  const Finished whole = run_emulated(resnet_in_f16);
  const Environment refusing("CNN_EMULATED_REFUSING_ENGINE", "2");
  const Finished run = run_emulated(resnet_in_f16);
  ASSERT_EQ(run.status, 0) << run.err;
  EXPECT_EQ(losses_in(run), losses_in(whole));
  const auto notes = lines_with(run, "takes its place");
  ASSERT_FALSE(notes.empty());
  EXPECT_EQ(std::set(notes.begin(), notes.end()).size(), notes.size()) << "each graph has one note";
}

TEST(EmulatedGpuChoices, ComputesOnTheDeviceThatGpuIndicesName) {
  const TemporaryFolder folder;
  const Environment devices("CNN_EMULATED_DEVICES", "2");
  const auto device_of = [&](const std::string& indices) {
    const std::string result = folder / ("result" + indices);
    const Finished run = run_emulated({"--device=gpu", "--model=trivial", "--data_name=cifar10",
                                       "--batch_size=2", "--num_batches=1", "--notune",
                                       "--num_warmup_batches=0", "--nomeasure_ceilings",
                                       "--gpu_indices=" + indices, "--result_json=" + result});
    EXPECT_EQ(run.status, 0) << run.err;
    return nlohmann::json::parse(read_file(result)).at("machine").at("gpu").at("pci_bus_id").dump();
  };
  EXPECT_EQ(device_of("0"), device_of(""));
  EXPECT_NE(device_of("1"), device_of("0"));
  EXPECT_THAT(run_emulated({"--device=gpu", "--model=trivial", "--gpu_indices=2"}).err,
              testing::HasSubstr("--gpu_indices=2: there is no GPU 2, only 2 from 0 on"));
  EXPECT_THAT(run_emulated({"--device=gpu", "--model=trivial", "--num_gpus=2", "--gpu_indices=1",
                            "--variable_update=replicated", "--notune"})
                  .err,
              testing::HasSubstr("--gpu_indices=1 names 1 GPU, but this host has a rank number 2"));
}

TEST(EmulatedGpuChoices, PlansItsFirstStepsWithLmsByTheSpeedsOfTheDeviceAndItsLink) {
  const Finished run =
      run_emulated(joined(resnet_in_f16, {"--lms", "--lms_policy=vdnn_all", "--num_batches=1"}));
  ASSERT_EQ(run.status, 0) << run.err;
  EXPECT_THAT(lines_with(run, "lms: first steps are planned by"),
              testing::ElementsAre(testing::AllOf(testing::HasSubstr(" TFLOP/s and "),
                                                  testing::HasSubstr(" GB/s out, "))));
}

TEST(EmulatedGpuChoices, TimesEnginesUnlessItIsToldNotTo) {
  const TemporaryFolder folder;
  const std::string cache_home = folder / "cache";
  const Environment cache("XDG_CACHE_HOME", cache_home.c_str());
  const Words flags{"--device=gpu",         "--model=lenet",    "--data_name=imagenet",
                    "--batch_size=2",       "--num_batches=1",  "--num_warmup_batches=0",
                    "--nomeasure_ceilings", "--display_every=1"};
  const Finished first = run_emulated(flags);
  ASSERT_EQ(first.status, 0) << first.err;
  EXPECT_EQ(lines_with(first, "for 60 s at most (--tune_seconds); --notune").size(), 1U);
  EXPECT_EQ(lines_with(first, "tuning: engines for ").size(), 1U);
  EXPECT_THAT(read_file(folder / "cache/cnn_benchmarks/plan_cache"),
              testing::HasSubstr("forward f32 x 2x"));
  const Finished second = run_emulated(flags);
  EXPECT_EQ(lines_with(second, "tuning: engines for ").size(), 0U) << second.err;
  EXPECT_EQ(losses_in(second), losses_in(first));
  const Finished hurried = run_emulated(joined(flags, {"--batch_size=3", "--tune_seconds=0"}));
  EXPECT_THAT(lines_with(hurried, "tuning: engines for 0 graphs"),
              testing::ElementsAre(testing::HasSubstr("were not within --tune_seconds")));
  const Finished untuned = run_emulated(joined(flags, {"--batch_size=3", "--notune"}));
  EXPECT_THAT(lines_with(untuned, "tuning"), testing::IsEmpty());
  EXPECT_THAT(lines_with(untuned, "plan cache"), testing::IsEmpty());
  EXPECT_EQ(losses_in(untuned), losses_in(hurried));
}

// Without sharing, each rank might find another engine the fastest, with another workspace.
TEST(EmulatedGpuChoices, RunsTheEnginesThatTheFirstHasTimedOnTwoDevices) {
  const TemporaryFolder folder;
  const Environment devices("CNN_EMULATED_DEVICES", "2");
  const Words flags = joined(resnet_in_f16, {"--num_gpus=2", "--variable_update=replicated",
                                             "--comm_backend=ring", "--num_batches=2"});
  const Finished run =
      run_emulated(joined(flags, {"--tune", "--plan_cache=" + (folder / "plans")}));
  ASSERT_EQ(run.status, 0) << run.err;
  EXPECT_THAT(lines_with(run, "tuning: engines for "),
              testing::ElementsAre(testing::HasSubstr("rank 0: tuning: engines for 17 graphs")));
  const Finished again = run_emulated(joined(flags, {"--plan_cache=" + (folder / "plans")}));
  EXPECT_EQ(losses_in(again), losses_in(run));
}

}  // namespace
}  // namespace cnn::tests
