#include <cmath>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/program/program.h"
#include "tests/support/files.h"

// The unchanged program with the unchanged sources of the CUDA backend, on the emulated GPU.

namespace cnn::tests {
namespace {

using Words = std::vector<std::string>;

struct Losses {
  std::vector<double> base;  // without weight decay, one for each step
};

Losses train(const std::string& device, Words flags) {
  const TemporaryFolder folder;
  const std::string result = folder / "result.json";
  const Environment driver("LD_LIBRARY_PATH", CNN_EMULATED_FOLDER);
  const Words common{"--device=" + device,     "--num_warmup_batches=0", "--display_every=1",
                     "--tf_random_seed=7",     "--nomeasure_ceilings",   "--precision=fp32_strict",
                     "--result_json=" + result};
  flags.insert(flags.end(), common.begin(), common.end());
  const Finished run = run_program(flags);
  EXPECT_EQ(run.status, 0) << run.err << run.out;
  Losses losses;
  if (run.status == 0) {
    const nlohmann::json written = nlohmann::json::parse(read_file(result));
    for (const auto& step : written.at("steps")) {
      losses.base.push_back(step.at("base_loss").get<double>());
    }
  }
  return losses;
}

Words with(Words flags, const Words& more) {
  flags.insert(flags.end(), more.begin(), more.end());
  return flags;
}

// Both devices start from the same values and images; sums in other orders make the difference.
// more: for the GPU only.
void expect_equal_losses(const Words& flags, double tolerance, const Words& more = {}) {
  const Losses cpu = train("cpu", flags), gpu = train("gpu", with(flags, more));
  ASSERT_FALSE(cpu.base.empty());
  ASSERT_EQ(gpu.base.size(), cpu.base.size());
  for (std::size_t step = 0; step < cpu.base.size(); ++step) {
    EXPECT_NEAR(gpu.base[step], cpu.base[step], tolerance * std::abs(cpu.base[step]))
        << "step " << step;
  }
}

TEST(EmulatedGpuTraining, OfTrivialHasTheLossesOfTheCpu) {
  expect_equal_losses({"--data_name=cifar10", "--model=trivial", "--batch_size=8",
                       "--num_batches=6", "--init_learning_rate=0.01"},
                      1e-4);
}

TEST(EmulatedGpuTraining, OfLenetHasTheLossesOfTheCpu) {
  expect_equal_losses({"--data_name=imagenet", "--model=lenet", "--batch_size=4", "--num_batches=4",
                       "--init_learning_rate=0.01"},
                      1e-3);
}

TEST(EmulatedGpuTraining, OfResnet20HasTheLossesOfTheCpu) {
  expect_equal_losses({"--data_name=cifar10", "--model=resnet20", "--batch_size=2",
                       "--num_batches=3", "--init_learning_rate=0.01"},
                      2e-3);
}

TEST(EmulatedGpuTraining, HasTheLossesOfTheCpuWhereDropoutIsDrawn) {
  expect_equal_losses(
      {"--data_name=cifar10", "--model=alexnet", "--batch_size=2", "--num_batches=3"}, 1e-5);
}

TEST(EmulatedGpuTraining, HasTheLossesOfTheCpuWhereTensorsAreSwapped) {
  expect_equal_losses({"--data_name=cifar10", "--model=resnet20", "--batch_size=2",
                       "--num_batches=2", "--optimizer=momentum", "--init_learning_rate=0.01"},
                      2e-3, {"--lms", "--lms_policy=vdnn_all"});
}

// Other delays let independent work meet in other orders, which must not change a bit.
TEST(EmulatedGpuTraining, HasTheSameBitsWhateverTheDelaysAre) {
  const Words flags{"--data_name=cifar10", "--model=resnet20", "--batch_size=2", "--num_batches=2"};
  const Losses first = train("gpu", flags);
  for (const char* seed : {"2", "3"}) {
    const Environment delays("CNN_EMULATED_SEED", seed);
    EXPECT_EQ(train("gpu", flags).base, first.base) << "seed " << seed;
  }
}

// Gradients travel to the host and back, and kernels wait for flags that the host sets.
TEST(EmulatedGpuTraining, OnTwoDevicesHasTheLossesOfTwoRanksOnTheCpu) {
  const Environment devices("CNN_EMULATED_DEVICES", "2");
  expect_equal_losses(
      {"--data_name=cifar10", "--model=resnet20", "--batch_size=2", "--num_batches=2",
       "--num_gpus=2", "--variable_update=replicated", "--init_learning_rate=0.01"},
      2e-3, {"--comm_backend=ring"});
}

TEST(EmulatedGpuTraining, SaysWhichDeviceIsMissing) {
  const Environment driver("LD_LIBRARY_PATH", CNN_EMULATED_FOLDER);
  const Finished run =
      run_program({"--device=gpu", "--data_name=cifar10", "--model=trivial", "--num_gpus=2",
                   "--variable_update=replicated", "--num_batches=1"});
  EXPECT_EQ(run.status, 1);
  EXPECT_THAT(run.err, testing::HasSubstr("there are 1 CUDA devices"));
}

TEST(EmulatedGpuTraining, SaysThatThereIsNoDevice) {
  const Environment driver("LD_LIBRARY_PATH", CNN_EMULATED_FOLDER);
  const Environment devices("CNN_EMULATED_DEVICES", "0");
  const Finished run =
      run_program({"--device=gpu", "--data_name=cifar10", "--model=trivial", "--num_batches=1"});
  EXPECT_EQ(run.status, 1);
  EXPECT_THAT(run.err, testing::HasSubstr("no CUDA-capable device is detected"));
}

TEST(EmulatedGpuTraining, TakesTunedEnginesFromThePlanCache) {
  const TemporaryFolder folder;
  const Words flags{"--data_name=cifar10", "--model=resnet20", "--batch_size=2", "--num_batches=2",
                    "--plan_cache=" + (folder / "plans")};
  const Losses tuned = train("gpu", with(flags, {"--tune"}));
  EXPECT_THAT(read_file(folder / "plans"), testing::HasSubstr("forward f32 x 2x16x32x32"));
  EXPECT_FALSE(tuned.base.empty());
  EXPECT_EQ(train("gpu", flags).base, tuned.base);
}

}  // namespace
}  // namespace cnn::tests
