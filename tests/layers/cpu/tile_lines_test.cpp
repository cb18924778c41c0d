#include "layers/cpu/tile_lines.h"

#include <gtest/gtest.h>
#include <vector>

#include "layers/cpu/isa.h"
#include "layers/cpu/rows.h"
#include "tests/layers/cpu/bf16_gradients.h"

namespace cnn::tests {
namespace {

using layers::Window;
using layers::cpu::TileLinesProblem;
using layers::cpu::TileLinesWeightsGradient;

GradientKernel tile_lines() {
  return gradient_kernel<TileLinesWeightsGradient, TileLinesProblem>(
      layers::cpu::loops_for(layers::cpu::effective_isa()), Layout::nhwc);
}

// The first convolutions of ResNet, AlexNet, VGG and Inception, and shapes at the edges of the
// loops: windows outside of the image, pixels that no window meets, bands and lines that end early.
std::vector<GradientCase> first_convolutions() {
  return {{"resnet", {2, 3, 30, 70}, 64, first_window()},
          {"alexnet", {2, 3, 47, 47}, 64, square(11, 4, 0), true},
          {"vgg", {2, 3, 20, 40}, 64, square(3, 1, 1), true},
          {"inception", {3, 3, 31, 31}, 32, square(3, 2, 0)},
          {"one_channel", {3, 1, 28, 28}, 32, square(5, 1, 2), true},
          {"five_channels_with_a_stride_of_three", {2, 5, 14, 17}, 32, square(3, 3, 1)},
          {"fifteen_channels", {2, 15, 9, 9}, 32, square(3, 1, 1), true},
          {"pixels_that_no_window_meets", {2, 3, 16, 15}, 96, square(1, 3, 0)},
          {"row_of_five",
           {2, 3, 9, 12},
           32,
           {.kernel_h = 1, .kernel_w = 5, .stride_h = 2, .pad_left = 2, .pad_right = 2},
           true},
          {"column_of_five",
           {2, 4, 12, 9},
           32,
           {.kernel_h = 5, .kernel_w = 1, .pad_top = 2, .pad_bottom = 2}}};
}

std::vector<GradientCase> first_convolutions_with_bias() {
  std::vector<GradientCase> cases = first_convolutions();
  std::erase_if(cases, [](const GradientCase& gradient_case) { return !gradient_case.bias; });
  return cases;
}

class TileLinesGradientOf : public testing::TestWithParam<GradientCase> {
 protected:
  void SetUp() override {
    if (!layers::cpu::effective_isa().amx_bf16) {
      GTEST_SKIP() << "this processor lacks amx_bf16";
    }
    ASSERT_TRUE(GetParam().problem<TileLinesProblem>(Layout::nhwc).is_supported());
  }
};

class TileLinesGradientWithBias : public TileLinesGradientOf {};

TEST_P(TileLinesGradientOf, IsTheSumOverAllPixelsForEachTap) {
  expect_sums_for_each_tap(GetParam(), tile_lines());
}

TEST_P(TileLinesGradientWithBias, SumsTheBiasOverAllPixels) {
  expect_sums_of_bias(GetParam(), tile_lines());
}

TEST_P(TileLinesGradientOf, HasTheSameBitsWithAnyNumberOfThreads) {
  expect_same_bits(GetParam(), tile_lines());
}

TEST_P(TileLinesGradientOf, ShowsANumberThatIsNotFinite) {
  expect_numbers_that_are_not_finite(GetParam(), tile_lines());
}

TEST_P(TileLinesGradientOf, IsZeroForChannelsThatDoNotExist) {
  const GradientCase& gradient_case = GetParam();
  GradientRun run(gradient_case);
  run.run(gradient_case, tile_lines(), 2);
  const auto dw = run.dw.view().as<float>();
  for (std::int64_t i = 0; i < std::ssize(dw); ++i) {
    if (i / 16 % 16 >= gradient_case.x[1]) {
      ASSERT_EQ(dw[static_cast<std::size_t>(i)], 0) << i;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, TileLinesGradientOf, testing::ValuesIn(first_convolutions()),
                         [](const auto& info) { return info.param.name; });
INSTANTIATE_TEST_SUITE_P(Shapes, TileLinesGradientWithBias,
                         testing::ValuesIn(first_convolutions_with_bias()),
                         [](const auto& info) { return info.param.name; });

// A number of x that no window meets counts nowhere, not even times zero.
TEST(TileLines, LeaveOutPixelsThatNoWindowMeets) {
  if (!layers::cpu::effective_isa().amx_bf16) {
    GTEST_SKIP() << "this processor lacks amx_bf16";
  }
  const GradientCase gradient_case{"strided", {1, 3, 8, 8}, 32, square(2, 3, 0)};
  GradientRun run(gradient_case);
  for (std::int64_t channel = 0; channel < 3; ++channel) {
    for (std::int64_t row = 0; row < 8; ++row) {
      run.x.view().as<float>()[static_cast<std::size_t>((row * 8 + 2) * 3 + channel)] =
          std::nanf("");
    }
  }
  run.run(gradient_case, tile_lines(), 1);
  for (const float value : run.dw.view().as<float>()) {
    ASSERT_FALSE(std::isnan(value));
  }
}

TEST(TileLinesProblem, RefusesWideImagesAndOddBlocks) {
  const auto supported = [](const GradientCase& gradient_case) {
    return gradient_case.problem<TileLinesProblem>(Layout::nhwc).is_supported();
  };
  EXPECT_TRUE(supported({"", {1, 3, 8, 8}, 32, square(3, 1, 1)}));
  EXPECT_FALSE(supported({"", {1, 16, 8, 8}, 32, square(3, 1, 1)}));
  EXPECT_FALSE(supported({"", {1, 8, 8, 8}, 32, square(3, 3, 1)})) << "steps of 24 words";
  EXPECT_FALSE(supported({"", {1, 3, 8, 8}, 48, square(3, 1, 1)}));
}

}  // namespace
}  // namespace cnn::tests
