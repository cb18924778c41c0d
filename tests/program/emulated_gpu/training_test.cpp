#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <string>

#include "tests/program/emulated_gpu/emulated_program.h"

namespace cnn::tests {
namespace {

TEST(EmulatedGpuTraining, TrainsTrivialWithTheLossesOfTheCpu) {
  expect_losses_of_the_cpu({"--data_name=cifar10", "--model=trivial", "--batch_size=8",
                            "--num_batches=6", "--init_learning_rate=0.01"},
                           1e-4);
}

TEST(EmulatedGpuTraining, TrainsLenetWithTheLossesOfTheCpu) {
  expect_losses_of_the_cpu({"--data_name=imagenet", "--model=lenet", "--batch_size=4",
                            "--num_batches=4", "--init_learning_rate=0.01"},
                           1e-3);
}

TEST(EmulatedGpuTraining, TrainsResnet20WithTheLossesOfTheCpu) {
  expect_losses_of_the_cpu({"--data_name=cifar10", "--model=resnet20", "--batch_size=2",
                            "--num_batches=3", "--init_learning_rate=0.01"},
                           2e-3);
}

TEST(EmulatedGpuTraining, HasTheLossesOfTheCpuWhereDropoutIsDrawn) {
  expect_losses_of_the_cpu(
      {"--data_name=cifar10", "--model=alexnet", "--batch_size=2", "--num_batches=3"}, 1e-5);
}

TEST(EmulatedGpuTraining, HasTheLossesOfTheCpuWhereTensorsAreSwapped) {
  expect_losses_of_the_cpu({"--data_name=cifar10", "--model=resnet20", "--batch_size=2",
                            "--num_batches=2", "--optimizer=momentum", "--init_learning_rate=0.01"},
                           2e-3, {"--lms", "--lms_policy=vdnn_all"});
}

// Other random delays reorder independent work, which must not change any bit.
TEST(EmulatedGpuTraining, HasTheSameBitsWhateverTheDelaysAre) {
  const Words flags{"--data_name=cifar10", "--model=resnet20", "--batch_size=2", "--num_batches=2"};
  const Training first = train("gpu", flags);
  for (const char* seed : {"2", "3"}) {
    const Environment delays("CNN_EMULATED_SEED", seed);
    EXPECT_EQ(train("gpu", flags).base, first.base) << "seed " << seed;
  }
}

// Gradients travel to the host and back, and kernels wait for flags that the host sets.
TEST(EmulatedGpuTraining, MatchesTheLossesOfTwoCpuRanksOnTwoDevices) {
  const Environment devices("CNN_EMULATED_DEVICES", "2");
  expect_losses_of_the_cpu(
      {"--data_name=cifar10", "--model=resnet20", "--batch_size=2", "--num_batches=2",
       "--num_gpus=2", "--variable_update=replicated", "--init_learning_rate=0.01"},
      2e-3, {"--comm_backend=ring"});
}

TEST(EmulatedGpuTraining, SaysWhichDeviceIsMissing) {
  const Environment driver("LD_LIBRARY_PATH", CNN_EMULATED_FOLDER);
  const Finished run =
      run_program({"--device=gpu", "--data_name=cifar10", "--model=trivial", "--num_gpus=2",
                   "--variable_update=replicated", "--num_batches=1", "--notune"});
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

}  // namespace
}  // namespace cnn::tests
