// Tests whole runs on the emulated GPU: evaluation during training, checkpoints, real images, other
// modes and all output files.

#include <algorithm>
#include <cstdint>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <random>
#include <string>

#include "tests/program/emulated_gpu/emulated_program.h"
#include "tests/support/files.h"

namespace cnn::tests {
namespace {

using testing::AllOf;
using testing::HasSubstr;

TEST(EmulatedGpuRun, EndsWithTheSameBitsWhenItIsResumed) {
  const TemporaryFolder folder;
  const Words flags = small_resnet({"--precision=fp16", "--fp16_enable_auto_loss_scale",
                                    "--fp16_inc_loss_scale_every_n=2", "--optimizer=adam"});
  train("gpu", with(flags, {"--num_batches=4", "--train_dir=" + (folder / "whole")}));
  for (const char* batches : {"--num_batches=2", "--num_batches=4"}) {
    train("gpu", with(flags, {batches, "--train_dir=" + (folder / "parts")}));
  }
  const std::string file = "/model.ckpt-4.safetensors";
  EXPECT_GT(read_file(folder / "whole" + file).size(), 1'000'000U);
  EXPECT_TRUE(read_file(folder / "whole" + file) == read_file(folder / "parts" + file));
}

TEST(EmulatedGpuRun, TrainsWithTheSameBitsWhenItEvaluatesOnTheWay) {
  const TemporaryFolder folder;
  const Words flags = small_resnet({"--num_batches=4", "--precision=bf16", "--save_model_steps=2"});
  const Training plain = train("gpu", with(flags, {"--train_dir=" + (folder / "plain")}));
  const Training evaluated =
      train("gpu", with(flags, {"--train_dir=" + (folder / "evaluated"), "--num_eval_batches=2",
                                "--eval_during_training_every_n_steps=2"}));
  EXPECT_EQ(plain.base, evaluated.base);
  EXPECT_THAT(evaluated.run.out,
              AllOf(HasSubstr("Running evaluation at global_step 2"), HasSubstr("Accuracy @ 1 = "),
                    HasSubstr("Running final evaluation at global_step 4")));
  for (const char* file : {"/model.ckpt-2.safetensors", "/model.ckpt-4.safetensors"}) {
    EXPECT_GT(read_file(folder / "plain" + file).size(), 1'000'000U);
    EXPECT_TRUE(read_file(folder / "plain" + file) == read_file(folder / "evaluated" + file));
  }
}

// Returns the evaluation's last line with the number of correct examples.
std::string accuracy_of(const Finished& run) {
  EXPECT_EQ(run.status, 0) << run.err;
  const std::size_t at = run.out.rfind("Accuracy @ 1 = ");
  return at == std::string::npos ? "" : run.out.substr(at, run.out.find('\n', at) - at);
}

TEST(EmulatedGpuRun, EvaluatesACheckpointLikeTheCpu) {
  const TemporaryFolder folder;
  const Words flags = small_resnet({"--train_dir=" + (folder / "t")});
  train("cpu", with(flags, {"--num_batches=3"}));
  const Words evaluation = with(flags, {"--eval", "--num_eval_batches=3", "--nomeasure_ceilings"});
  const Environment driver("LD_LIBRARY_PATH", CNN_EMULATED_FOLDER);
  const std::string cpu = accuracy_of(run_program(with(evaluation, {"--device=cpu"})));
  EXPECT_NE(cpu, "");
  for (const char* fusion : {"--fusion=none", "--fusion=bn"}) {
    EXPECT_EQ(accuracy_of(run_program(
                  with(evaluation, {"--device=gpu", "--precision=fp32_strict", fusion}))),
              cpu);
  }
}

TEST(EmulatedGpuRun, ForwardOnlyIsReplayedInEachPrecision) {
  const Words flags = small_resnet({"--num_batches=2", "--forward_only"});
  for (const char* precision : {"--precision=fp32_strict", "--precision=fp16"}) {
    const Training gpu = train("gpu", with(flags, {precision}));
    EXPECT_EQ(gpu.run.step_lines().size(), 2U);
    EXPECT_EQ(gpu.replays, 1U);
  }
}

std::string number_of(std::uint32_t number) {
  std::string bytes;
  for (const unsigned shift : {24U, 16U, 8U, 0U}) {
    bytes += static_cast<char>(number >> shift & 0xffU);
  }
  return bytes;
}

std::string random_bytes(std::mt19937& random, std::size_t count) {
  std::string bytes(count, '\0');
  for (char& byte : bytes) {
    byte = static_cast<char>(random() % 256);
  }
  return bytes;
}

// Writes MNIST files with 24 random images for training and evaluation.
void write_digits(const TemporaryFolder& folder) {
  constexpr std::uint32_t count = 24, size = 28;
  std::mt19937 random(7);
  std::string labels;
  for (std::uint32_t i = 0; i < count; ++i) {
    labels += static_cast<char>(random() % 10);
  }
  const std::string images = random_bytes(random, std::size_t{count} * size * size);
  for (const std::string kind : {"train", "t10k"}) {
    folder.write(kind + "-images-idx3-ubyte", std::string("\0\0\x08\x03", 4) + number_of(count) +
                                                  number_of(size) + number_of(size) + images);
    folder.write(kind + "-labels-idx1-ubyte",
                 std::string("\0\0\x08\x01", 4) + number_of(count) + labels);
  }
}

TEST(EmulatedGpuRun, MatchesTheLossesOfTheCpuOnFilesOfMnist) {
  const TemporaryFolder folder;
  write_digits(folder);
  expect_losses_of_the_cpu(
      {"--data_name=mnist", "--data_dir=" + folder.path().string(), "--model=mnist_deep",
       "--nodropout", "--batch_size=4", "--num_batches=3", "--init_learning_rate=0.01"},
      1e-4);
}

// Writes CIFAR-10 files with three random images each and returns flags for training on them.
Words write_pictures(const TemporaryFolder& folder) {
  std::mt19937 random(9);
  for (const std::string file : {"data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin",
                                 "data_batch_4.bin", "data_batch_5.bin", "test_batch.bin"}) {
    std::string bytes;
    for (int i = 0; i < 3; ++i) {
      bytes += static_cast<char>(random() % 10) + random_bytes(random, 3072);
    }
    folder.write("images/" + file, bytes);
  }
  return {"--data_name=cifar10", "--data_dir=" + (folder / "images"), "--model=resnet20",
          "--batch_size=2", "--init_learning_rate=0.01"};
}

// Images are cropped and mirrored at random by the seed, and copied while the previous step runs.
TEST(EmulatedGpuRun, MatchesTheLossesOfTheCpuOnFilesOfCifar) {
  const TemporaryFolder folder;
  expect_losses_of_the_cpu(with(write_pictures(folder), {"--num_batches=3"}), 2e-3);
}

TEST(SlowEmulatedGpuRun, ResumesWithTheNextImagesOfCifar) {
  const TemporaryFolder folder;
  const Words flags = with(write_pictures(folder), {"--precision=fp16"});
  const Words saved = with(flags, {"--train_dir=" + (folder / "t")});
  train("gpu", with(saved, {"--num_batches=2"}));
  const Training second = train("gpu", with(saved, {"--num_batches=3"}));
  const Training whole = train("gpu", with(flags, {"--num_batches=3"}));
  ASSERT_EQ(second.base.size(), 1U);
  ASSERT_EQ(whole.base.size(), 3U);
  EXPECT_EQ(second.base[0], whole.base[2]);
}

Finished compare_bits(const std::string& a, const std::string& b) {
  return run_and(
      {CNN_COMPARE, "--bits", a, b}, [](const Finished&) { return false; }, [] {});
}

TEST(EmulatedGpuHashes, AreEqualUpToTheFirstConvolutionOfTheCpu) {
  const TemporaryFolder folder;
  const Words flags = small_resnet({"--num_batches=1", "--fusion=none"});
  train("cpu", with(flags, {"--hash_file=" + (folder / "cpu")}));
  train("gpu", with(flags, {"--hash_file=" + (folder / "gpu")}));
  const Finished found = compare_bits(folder / "cpu", folder / "gpu");
  EXPECT_EQ(found.status, 1) << found.out << found.err;
  EXPECT_THAT(found.out, HasSubstr("differ first in step 1, in conv#1:0"));
}

TEST(EmulatedGpuHashes, AreEqualForTwoTrainingsWhateverTheDelaysAre) {
  const TemporaryFolder folder;
  const Words flags = small_resnet({"--num_batches=2", "--precision=fp16", "--fusion=conv"});
  train("gpu", with(flags, {"--hash_file=" + (folder / "a")}));
  const Environment delays("CNN_EMULATED_SEED", "5");
  train("gpu", with(flags, {"--hash_file=" + (folder / "b")}));
  const Finished found = compare_bits(folder / "a", folder / "b");
  EXPECT_EQ(found.status, 0) << found.out << found.err;
  EXPECT_THAT(found.out, HasSubstr("tensors in each of 2 steps"));
}

TEST(EmulatedGpuOutputs, HoldEveryOperationOfTheStep) {
  const TemporaryFolder folder;
  const Training run =
      train("gpu", small_resnet({"--num_batches=2", "--num_warmup_batches=2", "--precision=fp16",
                                 "--trace_file=" + (folder / "trace.json"), "--print_plan",
                                 "--tfprof_file=" + (folder / "operations.txt"),
                                 "--html_report=" + (folder / "page.html"),
                                 "--steps_csv=" + (folder / "steps.csv"),
                                 "--graph_file=" + (folder / "graph.dot")}));
  EXPECT_THAT(read_file(folder / "trace.json"),
              AllOf(HasSubstr("traceEvents"), HasSubstr("conv#1"), HasSubstr("dense_backward")));
  EXPECT_THAT(read_file(folder / "operations.txt"), AllOf(HasSubstr("conv "), HasSubstr("update")));
  EXPECT_THAT(read_file(folder / "page.html"), HasSubstr("H100"));
  EXPECT_THAT(read_file(folder / "graph.dot"), HasSubstr("digraph"));
  const std::string steps = read_file(folder / "steps.csv");
  EXPECT_GE(std::ranges::count(steps, '\n'), 3);
}

}  // namespace
}  // namespace cnn::tests
