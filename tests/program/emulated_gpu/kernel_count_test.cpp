// Counts the kernels of a training step, ours and those of the libraries; one execution of an
// engine counts as one kernel. The steps are launched without a CUDA graph, so that every kernel
// counts.

#include <gtest/gtest.h>
#include <string>

#include "tests/program/emulated_gpu/emulated_program.h"
#include "tests/support/files.h"

namespace cnn::tests {
namespace {

// Returns the difference between runs of consecutive lengths.
unsigned kernels_per_step(const Words& flags) {
  const auto count = [&flags](const char* batches) {
    const Training run =
        train("gpu", with(flags, {"--precision=fp16", "--nouse_cuda_graph", batches}));
    return run.launches + run.executions;
  };
  const unsigned less = count("--num_batches=1"), more = count("--num_batches=2");
  EXPECT_GT(more, less);
  return more - less;
}

TEST(EmulatedGpuKernels, AreFewerInAStepThatIsFused) {
  const unsigned none = kernels_per_step(small_resnet({"--fusion=none"}));
  const unsigned norms = kernels_per_step(small_resnet({"--fusion=bn"}));
  const unsigned convolutions = kernels_per_step(small_resnet({"--fusion=conv"}));
  EXPECT_LT(norms, none);
  EXPECT_LT(convolutions, norms);
}

// Each row of the Markdown table ends with the number of kernels.
TEST(SlowEmulatedGpuKernels, MatchTheTableOfPredictedSpeedsForResnet50) {
  const std::string text = read_file(CNN_SOURCE_DIR "/layers/cuda/README.md");
  for (const std::string fusion : {"none", "bn", "conv"}) {
    const unsigned kernels =
        kernels_per_step({"--model=resnet50", "--data_name=imagenet", "--image_size=32",
                          "--batch_size=2", "--fusion=" + fusion});
    for (const std::string machine : {"h100", "h200"}) {
      std::string cells = "| " + machine;
      cells.append(" | ").append(fusion).append(" |");
      const std::size_t row = text.find(cells);
      ASSERT_NE(row, text.npos) << machine << ' ' << fusion;
      const std::string line = text.substr(row, text.find('\n', row) - row);
      EXPECT_TRUE(line.ends_with("| " + std::to_string(kernels) + " |"))
          << kernels << " kernels, but the table has " << line;
    }
  }
}

}  // namespace
}  // namespace cnn::tests
