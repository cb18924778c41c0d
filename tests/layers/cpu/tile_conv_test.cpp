#include "layers/cpu/tile_conv.h"

#include <algorithm>
#include <cmath>
#include <gtest/gtest.h>
#include <limits>
#include <string>
#include <vector>

#include "layers/cpu/isa.h"
#include "layers/initializer.h"
#include "tests/layers/cpu/bf16_words.h"
#include "tests/layers/cpu/own_kernels.h"
#include "tests/layers/cpu/windows.h"
#include "tests/support/numeric.h"

namespace cnn::tests {
namespace {

using layers::Window;
using layers::cpu::TileConvolution;
using layers::cpu::TileConvProblem;

struct TileConvCase {
  std::string name;
  Shape x;
  std::int64_t filters;
  Window window;
  std::int64_t block = 32;
  std::int64_t gap = 0;  // words between pixels

  Shape y() const { return {x[0], filters, window.output_h(x[2]), window.output_w(x[3])}; }
  TileConvProblem problem(bool backward) const {
    const auto image = [this](const Shape& shape) {
      return TensorDesc{.shape = shape,
                        .type = DataType::bf16,
                        .layout = Layout::nhwc,
                        .pitch = gap == 0 ? 0 : shape[1] + gap};
    };
    return {.x = image(x), .y = image(y()), .window = window, .backward = backward, .block = block};
  }
};

// The shapes differ in strides, padding, pixels that no window reaches, and parts of a step.
std::vector<TileConvCase> tile_conv_cases() {
  return {
      {"pointwise", {2, 32, 10, 10}, 64, square(1, 1, 0)},
      {"pointwise_strided", {3, 64, 9, 10}, 32, square(1, 2, 0)},
      {"pointwise_strided_by_three", {2, 32, 11, 8}, 32, square(1, 3, 0)},
      {"pointwise_padded", {2, 32, 5, 5}, 32, square(1, 1, 1)},
      {"pointwise_blocks", {2, 128, 6, 5}, 64, square(1, 2, 0), 64},
      {"three", {2, 32, 10, 10}, 96, square(3, 1, 1)},
      {"three_blocks", {2, 64, 7, 7}, 128, square(3, 1, 1), 64},
      {"three_strided", {5, 32, 11, 11}, 32, square(3, 2, 1)},
      {"three_strided_even", {2, 64, 12, 12}, 64, square(3, 2, 1), 64},
      {"three_strided_valid", {2, 32, 12, 9}, 32, square(3, 2, 0)},
      {"three_with_pitch", {2, 32, 8, 8}, 64, square(3, 2, 1), 32, 32},
      {"five_strided", {2, 32, 13, 13}, 32, square(5, 2, 2)},
      {"row_of_seven", {2, 32, 9, 9}, 32, row_of_seven()},
      {"pad_after_alone", {1, 32, 8, 8}, 32, padded_after()},
  };
}

// Operands and the result, which is NaN before the kernel runs, in the memory order of the kernel.
struct TileConvRun {
  TileConvRun(const TileConvCase& conv, bool is_backward)
      : problem(conv.problem(is_backward)),
        image(random_words(pixels_of(problem.from()) * pitch_of(problem.from()), 1)),
        w(random_words(problem.taps() * problem.ins() * problem.outs(), 2)),
        result(
            {.shape = {pixels_of(problem.to()) * pitch_of(problem.to())}, .type = DataType::bf16}) {
    std::ranges::fill(result.view().as<BFloat16>(), to_bf16(std::nanf("")));
  }

  static std::int64_t pixels_of(const TensorDesc& desc) {
    return desc.shape[0] * desc.shape[2] * desc.shape[3];
  }
  // Quarters, whose products and sums are exact in f32.
  static HostTensor random_words(std::int64_t count, std::uint64_t stream) {
    const HostTensor values = draws({count}, DataType::f32, stream);
    for (float& value : values.view().as<float>()) {
      value = std::round(value * 4) / 4;
    }
    return bf16_words(values);
  }

  void run(int threads) {
    const Threads team(threads);
    const TileConvolution work(problem);
    const HostTensor workspace =
        constant({static_cast<std::int64_t>(work.workspace() / 4)}, std::nanf(""));
    work({.in = {image.view(), w.view()},
          .out = {result.view()},
          .workspace = {workspace.view().data, work.workspace()}});
    EXPECT_TRUE(workspace.guard_is_intact());
    EXPECT_TRUE(result.guard_is_intact());
  }

  // The weight of a tap between channels `in` that is read and `out` that is written.
  float weight(std::int64_t tap, std::int64_t in, std::int64_t out) const {
    const std::int64_t block = problem.block;
    const std::int64_t step = (out / block * problem.taps() + tap) * (problem.ins() / 32) + in / 32;
    const std::int64_t at = ((step * 16 + in % 32 / 2) * block + out % block) * 2 + in % 2;
    return to_float(w.view().as<BFloat16>()[static_cast<std::size_t>(at)]);
  }
  static float value(const HostTensor& image, const TensorDesc& desc, std::int64_t pixel,
                     std::int64_t channel) {
    return to_float(
        image.view().as<BFloat16>()[static_cast<std::size_t>(pixel * pitch_of(desc) + channel)]);
  }
  float got(std::int64_t pixel, std::int64_t channel) const {
    return value(result, problem.to(), pixel, channel);
  }

  // The pixel of dy at (p, q) that tap (r, s) joins with pixel (h, w) of x in one dimension; -1:
  // none.
  static std::int64_t joined(std::int64_t at, std::int64_t tap, std::int64_t stride,
                             std::int64_t pad, std::int64_t count) {
    const std::int64_t shifted = at + pad - tap;
    return shifted >= 0 && shifted % stride == 0 && shifted / stride < count ? shifted / stride
                                                                             : -1;
  }
  // The result that is due for a channel of a pixel, as a sum over all taps and channels.
  double due(std::int64_t pixel, std::int64_t channel) const {
    double sum = 0;
    const Shape &x = problem.x.shape, &y = problem.y.shape, &to = problem.to().shape;
    const Window& window = problem.window;
    const std::int64_t n = pixel / (to[2] * to[3]), row = pixel / to[3] % to[2],
                       column = pixel % to[3];
    for (std::int64_t tap = 0; tap < problem.taps(); ++tap) {
      const std::int64_t r = tap / window.kernel_w, s = tap % window.kernel_w;
      std::int64_t other = -1;
      if (problem.backward) {
        const std::int64_t p = joined(row, r, window.stride_h, window.pad_top, y[2]);
        const std::int64_t q = joined(column, s, window.stride_w, window.pad_left, y[3]);
        other = p < 0 || q < 0 ? -1 : (n * y[2] + p) * y[3] + q;
      } else {
        const std::int64_t h = row * window.stride_h + r - window.pad_top;
        const std::int64_t w_ = column * window.stride_w + s - window.pad_left;
        const bool inside = h >= 0 && h < x[2] && w_ >= 0 && w_ < x[3];
        other = inside ? (n * x[2] + h) * x[3] + w_ : -1;
      }
      for (std::int64_t in = 0; other >= 0 && in < problem.ins(); ++in) {
        sum += static_cast<double>(weight(tap, in, channel)) *
               static_cast<double>(value(image, problem.from(), other, in));
      }
    }
    return sum;
  }

  TileConvProblem problem;
  HostTensor image, w, result;
};

class TileConv : public testing::TestWithParam<TileConvCase> {
 protected:
  void SetUp() override {
    if (!layers::cpu::effective_isa().amx_bf16) {
      GTEST_SKIP() << "this processor lacks amx_bf16";
    }
  }
};

TEST_P(TileConv, IsTheSumOverTapsAndChannelsRounded) {
  for (const bool backward : {false, true}) {
    TileConvRun run(GetParam(), backward);
    run.run(2);
    for (std::int64_t pixel = 0; pixel < TileConvRun::pixels_of(run.problem.to()); ++pixel) {
      for (std::int64_t channel = pixel % 5; channel < run.problem.outs(); channel += 5) {
        const auto due = static_cast<float>(run.due(pixel, channel));
        ASSERT_EQ(run.got(pixel, channel), to_float(to_bf16(due)))
            << (backward ? "gradient, pixel " : "pixel ") << pixel << ", channel " << channel;
      }
    }
  }
}

TEST_P(TileConv, WritesNothingBetweenPixels) {
  for (const bool backward : {false, true}) {
    TileConvRun run(GetParam(), backward);
    run.run(2);
    const TensorDesc& to = run.problem.to();
    for (std::int64_t pixel = 0; pixel < TileConvRun::pixels_of(to); ++pixel) {
      for (std::int64_t channel = run.problem.outs(); channel < pitch_of(to); ++channel) {
        ASSERT_TRUE(std::isnan(run.got(pixel, channel))) << pixel << ", " << channel;
      }
    }
  }
}

TEST_P(TileConv, HasTheSameBitsWithAnyNumberOfThreads) {
  for (const bool backward : {false, true}) {
    TileConvRun one(GetParam(), backward);
    one.run(1);
    for (const int threads : {2, 3, 16}) {
      TileConvRun many(GetParam(), backward);
      many.run(threads);
      EXPECT_FALSE(difference(one.result.view(), many.result.view(), 0)) << threads;
    }
  }
}

// A number of the first image reaches no other image.
TEST_P(TileConv, ShowsNumbersThatAreNotFinite) {
  for (const bool backward : {false, true}) {
    for (const float value : {std::nanf(""), std::numeric_limits<float>::infinity()}) {
      TileConvRun run(GetParam(), backward);
      const TensorDesc& from = run.problem.from();
      for (std::int64_t pixel = 0; pixel < from.shape[2] * from.shape[3]; ++pixel) {
        run.image.view().as<BFloat16>()[static_cast<std::size_t>(pixel * pitch_of(from))] =
            to_bf16(value);
      }
      run.run(2);
      std::int64_t found = 0;
      for (std::int64_t pixel = 0; pixel < TileConvRun::pixels_of(run.problem.to()); ++pixel) {
        const bool is_due = std::isfinite(run.due(pixel, 1));
        found += is_due ? 0 : 1;
        ASSERT_EQ(std::isfinite(run.got(pixel, 1)), is_due) << pixel;
      }
      EXPECT_GT(found, 0);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, TileConv, testing::ValuesIn(tile_conv_cases()),
                         [](const auto& info) { return info.param.name; });

// Layers of networks whose gradients the rules compute with this kernel, with two images. The last
// one takes a group of images for each thread.
std::vector<TileConvCase> strided_layers() {
  return {{"resnet50_three_56", {2, 128, 56, 56}, 128, square(3, 2, 1), 64},
          {"resnet50_three_28", {2, 256, 28, 28}, 256, square(3, 2, 1), 64},
          {"resnet50_three_14", {2, 512, 14, 14}, 512, square(3, 2, 1), 64},
          {"resnet50_shortcut_56", {2, 256, 56, 56}, 512, square(1, 2, 0), 64},
          {"resnet50_shortcut_14", {2, 1024, 14, 14}, 2048, square(1, 2, 0), 64},
          {"inception3_strided_35", {2, 288, 35, 35}, 384, square(3, 2, 0), 32},
          {"inception3_strided_17", {2, 192, 17, 17}, 320, square(3, 2, 0), 64},
          {"groups_of_images", {9, 256, 8, 8}, 256, square(3, 2, 1), 64}};
}

class TileConvOfNetwork : public TileConv {};

TEST_P(TileConvOfNetwork, HasTheExactResults) {
  for (const bool backward : {false, true}) {
    TileConvCase conv = GetParam();
    const std::int64_t outs = backward ? conv.x[1] : conv.filters;
    conv.block = outs % conv.block == 0 ? conv.block : 32;
    TileConvRun run(conv, backward);
    run.run(2);
    const std::int64_t pixels = TileConvRun::pixels_of(run.problem.to());
    for (std::uint64_t draw = 0; draw < 2000; ++draw) {
      const auto pick = [draw](std::uint64_t stream, std::int64_t count) {
        return static_cast<std::int64_t>(layers::random_bits(stream, draw) %
                                         static_cast<std::uint64_t>(count));
      };
      const std::int64_t pixel = pick(1, pixels), channel = pick(2, outs);
      const auto due = static_cast<float>(run.due(pixel, channel));
      ASSERT_EQ(run.got(pixel, channel), to_float(to_bf16(due))) << pixel << ", " << channel;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Layers, TileConvOfNetwork, testing::ValuesIn(strided_layers()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace cnn::tests
