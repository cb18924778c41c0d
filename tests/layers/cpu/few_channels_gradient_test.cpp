#include "layers/cpu/few_channels_gradient.h"

#include <cstddef>
#include <cstdint>
#include <gtest/gtest.h>
#include <span>
#include <string>
#include <vector>

#include "layers/conv.h"
#include "layers/cpu/simd/few_channels_loops.h"
#include "tests/layers/cpu/run_work.h"
#include "tests/layers/cpu/sixteen_floats.h"
#include "tests/layers/cpu/windows.h"

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
  const Window eleven = square(11, 4, 0), three = square(3, 1, 1);
  constexpr Window uneven{.kernel_h = 5,
                          .kernel_w = 2,
                          .stride_h = 7,
                          .stride_w = 3,
                          .pad_top = 4,
                          .pad_bottom = 6,
                          .pad_left = 1,
                          .pad_right = 4};
  return {
      {"resnet", {2, 3, 64, 62}, 64, first_window()},
      {"resnet_blocks", {2, 3, 64, 62}, 64, first_window(), Layout::nchw, Layout::nchw16c},
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

// Brings the weight gradient of the kernel into the order of the op's loops.
struct InPlainOrder {
  std::size_t workspace() const { return kernel.workspace(); }
  void operator()(const Operands& o) const {
    kernel(o);
    const std::span<float> dw = o.out[0].as<float>();
    const std::vector<float> blocks(dw.begin(), dw.end());
    const std::int64_t channels = weights[1], pixels = weights[2] * weights[3];
    auto from = blocks.begin();
    for (std::int64_t out = 0; out < weights[0]; out += block) {
      for (std::int64_t pixel = 0; pixel < pixels; ++pixel) {
        for (std::int64_t c = 0; c < channels; ++c) {
          for (std::int64_t i = 0; i < block; ++i) {
            dw[static_cast<std::size_t>(((out + i) * channels + c) * pixels + pixel)] = *from++;
          }
        }
      }
    }
  }
  FewChannelsWeightsGradient kernel;
  Shape weights;
  std::int64_t block;
};

TEST_P(FewChannels, SumsWhatTheLoopsDo) {
  std::vector<const Loops*> all = runnable_loops();
  if (all.empty()) {
    GTEST_SKIP() << "this processor lacks avx2";
  }
  Loops wide = *all.front();
  wide.few_channels_gradient = layers::cpu::FewChannelsGradientLoop<SixteenFloats>::run;
  all.push_back(&wide);
  FewChannelsProblem problem = GetParam().problem();
  ASSERT_TRUE(is_supported(problem));
  for (const Loops* loops : all) {
    for (const std::int64_t block : {8, 16}) {
      problem.block = block;
      expect_like_loops(
          InPlainOrder{FewChannelsWeightsGradient(problem, *loops), GetParam().weights(), block},
          GetParam().op(), {problem.x, problem.y},
          {{.shape = GetParam().weights()}, {.shape = {GetParam().filters}}});
    }
  }
}

std::vector<float> gradient_by(int threads, const FewChannelsCase& of, const Loops& loops) {
  const Threads team(threads);
  const FewChannelsProblem problem = of.problem();
  const FewChannelsWeightsGradient kernel(problem, loops);
  const std::size_t bytes = kernel.workspace();
  const HostTensor x = draws(problem.x.shape, DataType::f32, 1),
                   dy = draws(problem.y.shape, DataType::f32, 2);
  const HostTensor dw({.shape = of.weights()}), bias({.shape = {of.filters}});
  const HostTensor workspace({.shape = {static_cast<std::int64_t>(bytes / sizeof(float))}});
  kernel({.in = {x.view(), dy.view()},
          .out = {dw.view(), bias.view()},
          .workspace = {workspace.view().data, bytes}});
  std::vector<float> all;
  for (const HostTensor* const result : {&dw, &bias}) {
    const std::span<float> values = result->view().as<float>();
    all.insert(all.end(), values.begin(), values.end());
  }
  return all;
}

TEST_P(FewChannels, HasTheSameBitsWithAnyNumberOfThreads) {
  for (const Loops* loops : runnable_loops()) {
    EXPECT_EQ(gradient_by(1, GetParam(), *loops), gradient_by(3, GetParam(), *loops));
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
