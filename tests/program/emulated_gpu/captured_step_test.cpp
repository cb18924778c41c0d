// Checks that steps captured into a CUDA graph and replayed give the same bits as launched steps.

#include <algorithm>
#include <gtest/gtest.h>
#include <ostream>
#include <string>

#include "tests/program/emulated_gpu/emulated_program.h"
#include "tests/support/files.h"

namespace cnn::tests {
namespace {

struct Numbers {
  std::string name;
  Words flags;
};
void PrintTo(const Numbers& numbers, std::ostream* out) { *out << numbers.name; }

class EmulatedGpuCapture : public testing::TestWithParam<Numbers> {};

// The checkpoints hold weights, moments, moving averages and the automatic loss scale. The scale
// rises every two steps, so that one of four steps overflows.
TEST_P(EmulatedGpuCapture, ChangesNoBitOfATraining) {
  const TemporaryFolder folder;
  const Words flags = small_resnet(with({"--num_batches=4"}, GetParam().flags));
  const std::string captured = folder / "captured", launched = folder / "launched";
  const Training a = train("gpu", with(flags, {"--train_dir=" + captured}));
  const Training b = train("gpu", with(flags, {"--train_dir=" + launched, "--nouse_cuda_graph"}));
  EXPECT_EQ(a.replays, 3U) << "the first step is captured, and then replayed";
  EXPECT_EQ(b.replays, 0U);
  EXPECT_GT(b.launches, a.launches);
  EXPECT_EQ(a.base, b.base);
  EXPECT_EQ(a.base.size(), 4U);
  const std::string file = "/model.ckpt-4.safetensors";
  EXPECT_GT(read_file(captured + file).size(), 1'000'000U);
  EXPECT_TRUE(read_file(captured + file) == read_file(launched + file));
}

std::string name_of_numbers(const testing::TestParamInfo<Numbers>& info) { return info.param.name; }

const Words automatic{"--precision=fp16", "--fp16_enable_auto_loss_scale",
                      "--fp16_inc_loss_scale_every_n=2"};
const Words fixed_scale{"--precision=fp16", "--fp16_loss_scale=256"};

INSTANTIATE_TEST_SUITE_P(
    Quick, EmulatedGpuCapture,
    testing::Values(Numbers{"fp32_none", {"--precision=fp32_strict", "--fusion=none"}},
                    Numbers{"fp16_automatic_conv", with(automatic, {"--fusion=conv"})},
                    Numbers{"bf16_bn", {"--precision=bf16", "--fusion=bn"}}),
    name_of_numbers);
INSTANTIATE_TEST_SUITE_P(
    Slow, EmulatedGpuCapture,
    testing::Values(Numbers{"fp32_bn", {"--precision=fp32_strict", "--fusion=bn"}},
                    Numbers{"tf32_bn", {"--precision=fp32", "--fusion=bn"}},
                    Numbers{"fp16_fixed_bn", with(fixed_scale, {"--fusion=bn"})},
                    Numbers{"fp16_fixed_none", with(fixed_scale, {"--fusion=none"})},
                    Numbers{"fp16_fixed_conv", with(fixed_scale, {"--fusion=conv"})},
                    Numbers{"fp16_automatic_none", with(automatic, {"--fusion=none"})},
                    Numbers{"fp16_automatic_bn", with(automatic, {"--fusion=bn"})},
                    Numbers{"bf16_none", {"--precision=bf16", "--fusion=none"}}),
    name_of_numbers);

// Scaling by a power of two is exact for gradients that neither overflow nor vanish.
TEST(SlowEmulatedGpuLossScale, ChangesNoLossOfFewSteps) {
  const Words fp16 = small_resnet({"--num_batches=3", "--precision=fp16"});
  const Training small = train("gpu", with(fp16, {"--fp16_loss_scale=64"}));
  const Training large = train("gpu", with(fp16, {"--fp16_loss_scale=128"}));
  ASSERT_EQ(small.base.size(), 3U);
  EXPECT_EQ(small.base.front(), large.base.front());
  for (std::size_t step = 1; step < small.base.size(); ++step) {
    EXPECT_NEAR(small.base[step], large.base[step], 0.01 * small.base[step]) << step;
  }
}

// Steps with non-finite gradients update nothing, so equal images have equal losses.
TEST(EmulatedGpuLossScale, LeavesWeightsAloneIfGradientsOverflow) {
  const Words flags = small_resnet({"--num_batches=3", "--precision=fp16",
                                    "--synthetic_labels=fixed", "--fp16_enable_auto_loss_scale"});
  const Training overflowing = train("gpu", with(flags, {"--fp16_loss_scale=1e30"}));
  ASSERT_EQ(overflowing.base.size(), 3U);
  EXPECT_EQ(overflowing.base[1], overflowing.base[0]);
  EXPECT_EQ(overflowing.base[2], overflowing.base[0]);
  const Training learning = train("gpu", with(flags, {"--fp16_loss_scale=128"}));
  ASSERT_EQ(learning.base.size(), 3U);
  EXPECT_EQ(learning.base[0], overflowing.base[0]);
  EXPECT_NE(learning.base[1], learning.base[0]);
}

}  // namespace
}  // namespace cnn::tests
