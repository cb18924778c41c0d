#include "layers/cpu/bf16_gradient.h"

#include <algorithm>
#include <cmath>
#include <gtest/gtest.h>
#include <limits>
#include <string>
#include <vector>

#include "tests/layers/cpu/own_kernels.h"
#include "tests/support/numeric.h"

namespace cnn::tests {
namespace {

using layers::Window;
using layers::cpu::Bf16GradientProblem;
using layers::cpu::Bf16WeightsGradient;
using layers::cpu::Loops;

struct GradientCase {
  std::string name;
  Shape x;
  std::int64_t filters;
  Window window;
  bool bias = false;

  Shape y() const { return {x[0], filters, window.output_h(x[2]), window.output_w(x[3])}; }
  Bf16GradientProblem problem() const {
    return {.x = {.shape = x, .type = DataType::bf16, .layout = Layout::nchw16c},
            .y = {.shape = y(), .type = DataType::bf16, .layout = Layout::nchw16c},
            .window = window,
            .bias = bias};
  }
};

Window square(std::int64_t kernel, std::int64_t stride, std::int64_t pad) {
  return {.kernel_h = kernel,
          .kernel_w = kernel,
          .stride_h = stride,
          .stride_w = stride,
          .pad_top = pad,
          .pad_bottom = pad,
          .pad_left = pad,
          .pad_right = pad};
}

// Shapes that differ in windows, odd rows, segments, slabs of channels and parts of rows.
std::vector<GradientCase> gradient_cases() {
  return {
      {"pointwise", {2, 32, 10, 10}, 48, square(1, 1, 0), true},
      {"pointwise_odd", {5, 16, 7, 7}, 16, square(1, 1, 0), true},
      {"pointwise_prime_column", {2, 16, 113, 1}, 32, square(1, 1, 0)},
      {"pointwise_padded", {2, 16, 5, 5}, 16, square(1, 1, 1)},
      {"pointwise_strided", {3, 48, 9, 9}, 32, square(1, 2, 0), true},
      {"pointwise_slabs", {2, 288, 4, 4}, 272, square(1, 1, 0), true},
      {"three", {2, 32, 10, 10}, 48, square(3, 1, 1), true},
      {"three_odd", {5, 16, 7, 7}, 16, square(3, 1, 1)},
      {"three_strided", {2, 16, 11, 11}, 32, square(3, 2, 1), true},
      {"three_valid", {2, 16, 9, 12}, 16, square(3, 1, 0)},
      {"three_slabs", {2, 96, 6, 6}, 112, square(3, 1, 1), true},
      {"three_segments_and_parts", {3, 16, 40, 41}, 32, square(3, 1, 1), true},
      {"five_strided", {2, 16, 13, 13}, 16, square(5, 2, 2)},
      {"row_of_seven",
       {2, 16, 9, 9},
       32,
       {.kernel_h = 1, .kernel_w = 7, .stride_h = 2, .pad_left = 3, .pad_right = 3}},
      {"column_of_seven",
       {2, 32, 9, 9},
       16,
       {.kernel_h = 7, .kernel_w = 1, .pad_top = 3, .pad_bottom = 3}},
      {"pad_after_alone",
       {1, 16, 8, 8},
       16,
       {.kernel_h = 3,
        .kernel_w = 3,
        .stride_h = 2,
        .stride_w = 2,
        .pad_bottom = 1,
        .pad_right = 1}},
  };
}

// The instruction sets that have the loops.
std::vector<const Loops*> gradient_loops() {
  std::vector<const Loops*> all = runnable_loops();
  std::erase_if(all, [](const Loops* loops) { return loops->bf16_gradient.multiply == nullptr; });
  return all;
}

// Operands in blocks of channels, and the kernel's results, which are NaN before it runs.
struct GradientRun {
  explicit GradientRun(const GradientCase& of)
      : x(draws({of.x.elements()}, DataType::f32, 1)),
        dy(draws({of.y().elements()}, DataType::f32, 2)),
        dw(constant({of.filters * of.x[1] * of.problem().taps()}, std::nanf(""))),
        bias(constant({of.filters}, std::nanf(""))) {
    round_to(DataType::bf16, x.view());
    round_to(DataType::bf16, dy.view());
  }

  void run(const GradientCase& of, const Loops& loops, int threads) {
    const Threads team(threads);
    const Bf16WeightsGradient work(of.problem(), loops);
    const auto bytes = static_cast<std::int64_t>(work.workspace());
    const HostTensor workspace = constant({bytes / 4}, std::nanf(""));
    const HostTensor x_words = words_of(x), dy_words = words_of(dy);
    work({.in = {x_words.view(), dy_words.view()},
          .out = {dw.view(), bias.view()},
          .workspace = {workspace.view().data, work.workspace()}});
    EXPECT_TRUE(workspace.guard_is_intact());
    EXPECT_TRUE(dw.guard_is_intact());
    EXPECT_TRUE(bias.guard_is_intact());
  }

  static HostTensor words_of(const HostTensor& values) {
    HostTensor words({.shape = values.desc().shape, .type = DataType::bf16});
    const auto from = values.view().as<float>();
    const auto to = words.view().as<BFloat16>();
    std::ranges::transform(from, to.begin(), to_bf16);
    return words;
  }

  HostTensor x, dy, dw, bias;
};

// The place of channel c of pixel (h, w) of image n in blocks of 16.
std::size_t place(const Shape& shape, std::int64_t n, std::int64_t c, std::int64_t h,
                  std::int64_t w) {
  const std::int64_t block = n * shape[1] / 16 + c / 16;
  return static_cast<std::size_t>(((block * shape[2] + h) * shape[3] + w) * 16 + c % 16);
}

// Visits the pixels of dy that one tap of the window joins with a pixel of x.
template <class Visit>
void each_pixel(const GradientCase& of, std::int64_t r, std::int64_t s, const Visit& visit) {
  const Shape y = of.y();
  const Window& window = of.window;
  for (std::int64_t n = 0; n < y[0]; ++n) {
    for (std::int64_t p = 0; p < y[2]; ++p) {
      for (std::int64_t q = 0; q < y[3]; ++q) {
        const std::int64_t h = p * window.stride_h + r - window.pad_top;
        const std::int64_t w = q * window.stride_w + s - window.pad_left;
        if (h >= 0 && h < of.x[2] && w >= 0 && w < of.x[3]) {
          visit(n, p, q, h, w);
        }
      }
    }
  }
}

double distance(float got, double expected) {
  return std::isnan(got) ? INFINITY : std::abs(static_cast<double>(got) - expected);
}

// The largest error of one tap of the gradient.
double worst_of_tap(const GradientCase& of, const GradientRun& run, std::int64_t r,
                    std::int64_t s) {
  const auto x = run.x.view().as<float>(), dy = run.dy.view().as<float>(),
             dw = run.dw.view().as<float>();
  const std::int64_t tap = r * of.window.kernel_w + s;
  double worst = 0;
  for (std::int64_t o = 0; o < of.filters; ++o) {
    for (std::int64_t i = o % 7; i < of.x[1]; i += 7) {
      double sum = 0;
      each_pixel(of, r, s, [&](auto n, auto p, auto q, auto h, auto w) {
        sum += static_cast<double>(x[place(of.x, n, i, h, w)]) *
               static_cast<double>(dy[place(of.y(), n, o, p, q)]);
      });
      const std::int64_t tile = (o / 16 * (of.x[1] / 16) + i / 16) * of.problem().taps() + tap;
      const float got = dw[static_cast<std::size_t>((tile * 16 + i % 16) * 16 + o % 16)];
      worst = std::max(worst, distance(got, sum));
    }
  }
  return worst;
}

class Bf16Gradient : public testing::TestWithParam<GradientCase> {};

TEST_P(Bf16Gradient, IsTheSumOverAllPixelsForEachTap) {
  const GradientCase& of = GetParam();
  for (const Loops* loops : gradient_loops()) {
    GradientRun run(of);
    run.run(of, *loops, 2);
    for (std::int64_t r = 0; r < of.window.kernel_h; ++r) {
      for (std::int64_t s = 0; s < of.window.kernel_w; ++s) {
        EXPECT_LT(worst_of_tap(of, run, r, s), 1e-4) << r << ", " << s << " " << loops->name;
      }
    }
  }
}

TEST_P(Bf16Gradient, SumsTheBiasOverAllPixels) {
  const GradientCase& of = GetParam();
  if (!of.bias) {
    GTEST_SKIP() << "a case without bias";
  }
  const Shape y = of.y();
  for (const Loops* loops : gradient_loops()) {
    GradientRun run(of);
    run.run(of, *loops, 2);
    for (std::int64_t o = 0; o < of.filters; ++o) {
      double sum = 0;
      for (std::int64_t n = 0; n < y[0]; ++n) {
        for (std::int64_t p = 0; p < y[2] * y[3]; ++p) {
          sum += static_cast<double>(run.dy.view().as<float>()[place(y, n, o, p / y[3], p % y[3])]);
        }
      }
      const float got = run.bias.view().as<float>()[static_cast<std::size_t>(o)];
      EXPECT_LT(distance(got, sum), 1e-4) << o << " " << loops->name;
    }
  }
}

TEST_P(Bf16Gradient, HasTheSameBitsWithAnyNumberOfThreads) {
  for (const Loops* loops : gradient_loops()) {
    GradientRun one(GetParam());
    one.run(GetParam(), *loops, 1);
    for (const int threads : {2, 3, 16}) {
      GradientRun many(GetParam());
      many.run(GetParam(), *loops, threads);
      EXPECT_FALSE(difference(one.dw.view(), many.dw.view(), 0)) << threads << " " << loops->name;
      EXPECT_FALSE(difference(one.bias.view(), many.bias.view(), 0))
          << threads << " " << loops->name;
    }
  }
}

TEST_P(Bf16Gradient, ShowsANumberThatIsNotFinite) {
  for (const Loops* loops : gradient_loops()) {
    for (const float value : {std::nanf(""), std::numeric_limits<float>::infinity()}) {
      GradientRun run(GetParam());
      const Shape y = GetParam().y();
      run.dy.view().as<float>()[place(y, 0, 3, y[2] / 2, y[3] / 2)] = value;
      run.run(GetParam(), *loops, 2);
      const std::int64_t centre = GetParam().window.kernel_h / 2 * GetParam().window.kernel_w +
                                  GetParam().window.kernel_w / 2;
      const auto dw = run.dw.view().as<float>();
      EXPECT_FALSE(std::isfinite(dw[static_cast<std::size_t>(centre * 256 + 3)])) << loops->name;
      EXPECT_TRUE(std::isfinite(dw[static_cast<std::size_t>(centre * 256 + 4)])) << loops->name;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, Bf16Gradient, testing::ValuesIn(gradient_cases()),
                         [](const auto& of) { return of.param.name; });

}  // namespace
}  // namespace cnn::tests
