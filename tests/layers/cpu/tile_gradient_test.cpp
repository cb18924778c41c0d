#include "layers/cpu/tile_gradient.h"

#include <algorithm>
#include <cmath>
#include <gtest/gtest.h>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "layers/cpu/isa.h"
#include "layers/cpu/rows.h"
#include "layers/initializer.h"
#include "tests/layers/cpu/bf16_gradients.h"

namespace cnn::tests {
namespace {

using layers::Window;
using layers::cpu::TileGradientProblem;
using layers::cpu::TileWeightsGradient;

// The kernel, if this processor has tiles.
std::vector<GradientKernel> tile_kernels() {
  if (!layers::cpu::effective_isa().amx_bf16) {
    return {};
  }
  return {gradient_kernel<TileWeightsGradient, TileGradientProblem>(
      layers::cpu::loops_for(layers::cpu::effective_isa()), Layout::nhwc)};
}

class TileGradient : public testing::TestWithParam<GradientCase> {
 protected:
  void SetUp() override {
    if (tile_kernels().empty()) {
      GTEST_SKIP() << "this processor lacks amx_bf16";
    }
  }
};

class TileGradientWithBias : public TileGradient {};

TEST_P(TileGradient, IsTheSumOverAllPixelsForEachTap) {
  for (const GradientKernel& kernel : tile_kernels()) {
    expect_sums_for_each_tap(GetParam(), kernel);
  }
}

TEST_P(TileGradientWithBias, SumsTheBiasOverAllPixels) {
  for (const GradientKernel& kernel : tile_kernels()) {
    expect_sums_of_bias(GetParam(), kernel);
  }
}

TEST_P(TileGradient, HasTheSameBitsWithAnyNumberOfThreads) {
  for (const GradientKernel& kernel : tile_kernels()) {
    expect_same_bits(GetParam(), kernel);
  }
}

TEST_P(TileGradient, ShowsANumberThatIsNotFinite) {
  for (const GradientKernel& kernel : tile_kernels()) {
    expect_numbers_that_are_not_finite(GetParam(), kernel);
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, TileGradient, testing::ValuesIn(gradient_cases()),
                         [](const auto& info) { return info.param.name; });
INSTANTIATE_TEST_SUITE_P(Shapes, TileGradientWithBias,
                         testing::ValuesIn(gradient_cases_with_bias()),
                         [](const auto& info) { return info.param.name; });

// Layers of networks for ImageNet, with one image of VGG-16 and of Inception and two of the rest.
std::vector<GradientCase> layers_of_networks() {
  const auto layer = [](const std::string& name, const Shape& x, std::int64_t filters,
                        const Window& window) {
    return GradientCase{name, x, filters, window, name.starts_with("vgg")};
  };
  const Window one = square(1, 1, 0), one_strided = square(1, 2, 0), three = square(3, 1, 1),
               three_strided = square(3, 2, 1), five = square(5, 1, 2);
  return {layer("resnet50_reduce_56", {2, 64, 56, 56}, 64, one),
          layer("resnet50_three_56", {2, 64, 56, 56}, 64, three),
          layer("resnet50_expand_56", {2, 64, 56, 56}, 256, one),
          layer("resnet50_shortcut_56", {2, 256, 56, 56}, 512, one_strided),
          layer("resnet50_three_strided_56", {2, 128, 56, 56}, 128, three_strided),
          layer("resnet50_three_28", {2, 128, 28, 28}, 128, three),
          layer("resnet50_expand_28", {2, 128, 28, 28}, 512, one),
          layer("resnet50_reduce_28", {2, 512, 28, 28}, 128, one),
          layer("resnet50_three_14", {2, 256, 14, 14}, 256, three),
          layer("resnet50_expand_14", {2, 256, 14, 14}, 1024, one),
          layer("resnet50_shortcut_14", {2, 1024, 14, 14}, 2048, one_strided),
          layer("resnet50_three_7", {2, 512, 7, 7}, 512, three),
          layer("resnet50_expand_7", {2, 512, 7, 7}, 2048, one),
          layer("vgg16_224", {1, 64, 224, 224}, 64, three),
          layer("vgg16_112", {1, 64, 112, 112}, 128, three),
          layer("vgg16_56", {1, 128, 56, 56}, 256, three),
          layer("vgg16_28", {1, 256, 28, 28}, 512, three),
          layer("vgg16_14", {1, 512, 14, 14}, 512, three),
          layer("googlenet_three_28", {2, 96, 28, 28}, 128, three),
          layer("googlenet_five_28", {2, 16, 28, 28}, 32, five),
          layer("googlenet_pool_28", {2, 192, 28, 28}, 32, one),
          layer("googlenet_one_14", {2, 528, 14, 14}, 256, one),
          layer("googlenet_three_14", {2, 160, 14, 14}, 320, three),
          layer("googlenet_five_7", {2, 48, 7, 7}, 128, five),
          layer("inception3_valid_147", {1, 32, 149, 149}, 32, square(3, 1, 0)),
          layer("inception3_one_73", {1, 64, 73, 73}, 80, one),
          layer("inception3_five_35", {1, 48, 35, 35}, 64, five),
          layer("inception3_strided_35", {1, 288, 35, 35}, 384, square(3, 2, 0)),
          layer("inception3_row_17", {1, 128, 17, 17}, 192,
                {.kernel_w = 7, .pad_left = 3, .pad_right = 3}),
          layer("inception3_column_17", {1, 160, 17, 17}, 192,
                {.kernel_h = 7, .pad_top = 3, .pad_bottom = 3}),
          layer("inception3_one_8", {1, 2048, 8, 8}, 448, one),
          layer("inception3_column_8", {1, 384, 8, 8}, 384,
                {.kernel_h = 3, .pad_top = 1, .pad_bottom = 1})};
}

// Quarters, whose products and sums are exact in f32 in any order.
void round_to_quarters(std::span<float> values) {
  for (float& value : values) {
    value = std::round(value * 4) / 4;
  }
}

// An element of the gradient.
struct Element {
  std::int64_t output, input, tap;
};

double gradient_in(const GradientCase& gradient_case, const GradientRun& run, const Element& at) {
  const std::int64_t tile =
      (at.output / 16 * (gradient_case.x[1] / 16) + at.input / 16) * gradient_case.taps() + at.tap;
  const std::int64_t place = (tile * 16 + at.input % 16) * 16 + at.output % 16;
  return static_cast<double>(run.dw.view().as<float>()[static_cast<std::size_t>(place)]);
}

double gradient_by_sum(const GradientCase& gradient_case, const GradientRun& run, Layout layout,
                       const Element& at) {
  const auto x = run.x.view().as<float>(), dy = run.dy.view().as<float>();
  double sum = 0;
  each_pixel(
      gradient_case, at.tap / gradient_case.window.kernel_w, at.tap % gradient_case.window.kernel_w,
      [&](const Pixel& dy_pixel, const Pixel& x_pixel) {
        sum += static_cast<double>(x[place(gradient_case.x, layout, x_pixel, at.input)]) *
               static_cast<double>(dy[place(gradient_case.y(), layout, dy_pixel, at.output)]);
      });
  return sum;
}

// The sum over all channels of an image, by pixel, in nhwc.
std::vector<double> sums_of_pixels(std::span<const float> image, std::int64_t channels) {
  std::vector<double> sums(image.size() / static_cast<std::size_t>(channels));
  for (std::size_t i = 0; i < image.size(); ++i) {
    sums[i / static_cast<std::size_t>(channels)] += static_cast<double>(image[i]);
  }
  return sums;
}

double sum_of_gradients(const GradientCase& gradient_case, const GradientRun& run,
                        std::int64_t tap) {
  const std::vector<double> x = sums_of_pixels(run.x.view().as<float>(), gradient_case.x[1]);
  const std::vector<double> dy = sums_of_pixels(run.dy.view().as<float>(), gradient_case.filters);
  const auto number = [](const Shape& shape, const Pixel& at) {
    return static_cast<std::size_t>((at.image * shape[2] + at.row) * shape[3] + at.column);
  };
  double sum = 0;
  each_pixel(gradient_case, tap / gradient_case.window.kernel_w,
             tap % gradient_case.window.kernel_w, [&](const Pixel& dy_pixel, const Pixel& x_pixel) {
               sum += x[number(gradient_case.x, x_pixel)] * dy[number(gradient_case.y(), dy_pixel)];
             });
  return sum;
}

class LayerOfNetwork : public TileGradient {};

TEST_P(LayerOfNetwork, HasTheExactGradient) {
  const GradientCase& gradient_case = GetParam();
  for (const GradientKernel& kernel : tile_kernels()) {
    GradientRun run(gradient_case);
    round_to_quarters(run.x.view().as<float>());
    round_to_quarters(run.dy.view().as<float>());
    run.run(gradient_case, kernel, 2);
    for (std::uint64_t draw = 0; draw < 64; ++draw) {
      const auto pick = [draw](std::uint64_t stream, std::int64_t count) {
        return static_cast<std::int64_t>(layers::random_bits(stream, draw) %
                                         static_cast<std::uint64_t>(count));
      };
      const std::int64_t o = pick(1, gradient_case.filters), i = pick(2, gradient_case.x[1]),
                         tap = pick(3, gradient_case.taps());
      EXPECT_EQ(gradient_in(gradient_case, run, {o, i, tap}),
                gradient_by_sum(gradient_case, run, kernel.layout, {o, i, tap}))
          << o << ", " << i << ", " << tap;
    }
  }
}

TEST_P(LayerOfNetwork, HasTheSumOfAllGradientsOfATap) {
  const GradientCase& gradient_case = GetParam();
  for (const GradientKernel& kernel : tile_kernels()) {
    GradientRun run(gradient_case);
    round_to_quarters(run.x.view().as<float>());
    round_to_quarters(run.dy.view().as<float>());
    run.run(gradient_case, kernel, 3);
    const std::int64_t tap = gradient_case.taps() / 2;
    double got = 0;
    for (std::int64_t o = 0; o < gradient_case.filters; ++o) {
      for (std::int64_t i = 0; i < gradient_case.x[1]; ++i) {
        got += gradient_in(gradient_case, run, {o, i, tap});
      }
    }
    EXPECT_EQ(got, sum_of_gradients(gradient_case, run, tap));
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, LayerOfNetwork, testing::ValuesIn(layers_of_networks()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace cnn::tests
