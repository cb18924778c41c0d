#include "layers/cpu/few_channels_gradient.h"

#include <gtest/gtest.h>
#include <span>
#include <string>
#include <vector>

#include "layers/conv.h"
#include "layers/cpu/rows.h"
#include "layers/cpu/simd/few_channels_loops.h"
#include "tests/layers/cpu/run_work.h"
#include "tests/layers/cpu/sixteen_floats.h"
#include "tests/support/op_runner.h"

namespace cnn::tests {
namespace {

using layers::Conv2dBackwardWeights;
using layers::ConvAttributes;
using layers::Window;
using layers::cpu::FewChannelsProblem;
using layers::cpu::FewChannelsWeightsGradient;
using layers::cpu::Loops;

struct FewChannelsCase {
  std::string name;
  Shape x;
  std::int64_t filters;
  Window window;
  Layout from = Layout::nhwc, to = Layout::nhwc;

  Shape weights() const { return {filters, x[1], window.kernel_h, window.kernel_w}; }
  FewChannelsProblem problem() const {
    return {
        .x = {.shape = x, .layout = from},
        .y = {.shape = {x[0], filters, window.output_h(x[2]), window.output_w(x[3])}, .layout = to},
        .window = window,
        .bias = true};
  }
  Conv2dBackwardWeights op() const {
    ConvAttributes attributes;
    attributes.window = window;
    attributes.bias = true;
    return {attributes, weights()};
  }
};

// The first convolutions of ResNet, AlexNet and VGG, and shapes at the edges of the loops: rows in
// two pieces, windows outside the image, panels that are cut.
std::vector<FewChannelsCase> few_channels_cases() {
  constexpr Window seven{.kernel_h = 7,
                         .kernel_w = 7,
                         .stride_h = 2,
                         .stride_w = 2,
                         .pad_top = 2,
                         .pad_bottom = 3,
                         .pad_left = 2,
                         .pad_right = 3};
  constexpr Window eleven{.kernel_h = 11, .kernel_w = 11, .stride_h = 4, .stride_w = 4};
  constexpr Window three{
      .kernel_h = 3, .kernel_w = 3, .pad_top = 1, .pad_bottom = 1, .pad_left = 1, .pad_right = 1};
  constexpr Window uneven{.kernel_h = 5,
                          .kernel_w = 2,
                          .stride_h = 7,
                          .stride_w = 3,
                          .pad_top = 4,
                          .pad_bottom = 6,
                          .pad_left = 1,
                          .pad_right = 4};
  return {
      {"resnet", {2, 3, 64, 62}, 64, seven},
      {"resnet_blocks", {2, 3, 64, 62}, 64, seven, Layout::nchw, Layout::nchw16c},
      {"alexnet", {3, 3, 67, 75}, 64, eleven},
      {"vgg", {2, 3, 33, 34}, 48, three, Layout::nchw, Layout::nhwc},
      {"two_pieces_of_a_row", {1, 3, 5, 139}, 32, three},
      {"two_pieces_of_a_row_of_blocks", {1, 3, 5, 259}, 48, three, Layout::nhwc, Layout::nchw16c},
      {"one_channel", {4, 1, 28, 28}, 16, three},
      {"four_channels", {2, 4, 19, 20}, 80, uneven},
      {"four_channels_of_planes", {2, 4, 19, 20}, 80, uneven, Layout::nchw, Layout::nchw16c},
      {"one_pixel", {2, 3, 1, 1}, 16, three},
  };
}

class FewChannels : public testing::TestWithParam<FewChannelsCase> {};
INSTANTIATE_TEST_SUITE_P(Cpu, FewChannels, testing::ValuesIn(few_channels_cases()),
                         [](const auto& info) { return info.param.name; });

TEST_P(FewChannels, SumsWhatTheLoopsDo) {
  const FewChannelsProblem problem = GetParam().problem();
  ASSERT_TRUE(is_supported(problem));
  std::vector<const Loops*> all = runnable_loops();
  if (all.empty()) {
    GTEST_SKIP() << "this processor lacks avx2";
  }
  Loops wide = *all.front();
  wide.few_channels_gradient = layers::cpu::FewChannelsGradientLoop<SixteenFloats>::run;
  all.push_back(&wide);
  for (const Loops* loops : all) {
    expect_like_loops(FewChannelsWeightsGradient(problem, *loops), GetParam().op(),
                      {problem.x, problem.y},
                      {{.shape = GetParam().weights()}, {.shape = {GetParam().filters}}});
  }
}

TEST_P(FewChannels, HasTheSameBitsWithAnyNumberOfThreads) {
  const FewChannelsProblem problem = GetParam().problem();
  for (const Loops* loops : runnable_loops()) {
    KernelTable table;
    add_few_channels_rows(table, *loops);
    const HostTensor x = draws(problem.x.shape, DataType::f32, 1);
    const HostTensor dy = draws(problem.y.shape, DataType::f32, 2);
    const std::vector<TensorView> in{x.view(), dy.view()};
    const Signature request{
        .in = {problem.x, problem.y},
        .out = {{.shape = GetParam().weights()}, {.shape = {GetParam().filters}}}};
    std::vector<std::vector<float>> found;
    for (const int threads : {1, 3}) {
      const Threads team(threads);
      const auto run = run_op(table, GetParam().op(), request, in);
      ASSERT_TRUE(run.has_value());
      const std::span<float> w = run->out[0].view().as<float>();
      found.emplace_back(w.begin(), w.end());
    }
    EXPECT_EQ(found[0], found[1]);
  }
}

TEST(FewChannels, LeavesOtherConvolutionsToOthers) {
  FewChannelsProblem problem = few_channels_cases()[0].problem();
  EXPECT_TRUE(is_supported(problem));
  FewChannelsProblem other = problem;
  other.x.shape = {2, 5, 64, 62};
  EXPECT_FALSE(is_supported(other)) << "five channels";
  other = problem;
  other.y.shape = {2, 24, 32, 31};
  EXPECT_FALSE(is_supported(other)) << "24 filters are no whole blocks";
  other = problem;
  other.y.type = DataType::bf16;
  EXPECT_FALSE(is_supported(other)) << "16 bits";
}

}  // namespace
}  // namespace cnn::tests
