#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <gtest/gtest.h>
#include <limits>
#include <string>
#include <vector>

#include "layers/window.h"
#include "tests/layers/cpu/bf16_words.h"
#include "tests/layers/cpu/own_kernels.h"
#include "tests/layers/cpu/windows.h"
#include "tests/support/numeric.h"

// Tests of weight gradients of bf16 convolutions that hold for each kernel: cases, operands, and
// the gradient as the sum that defines it.
namespace cnn::tests {

struct GradientCase {
  std::string name;
  Shape x;
  std::int64_t filters;
  layers::Window window;
  bool bias = false;

  Shape y() const { return {x[0], filters, window.output_h(x[2]), window.output_w(x[3])}; }
  std::int64_t taps() const { return window.kernel_h * window.kernel_w; }
  std::int64_t in_blocks() const { return (x[1] + 15) / 16; }
  template <class Problem>
  Problem problem(Layout layout) const {
    return {.x = {.shape = x, .type = DataType::bf16, .layout = layout},
            .y = {.shape = y(), .type = DataType::bf16, .layout = layout},
            .window = window,
            .bias = bias};
  }
};

// Shapes that differ in windows, odd rows, segments, slabs of channels and parts of rows.
inline std::vector<GradientCase> gradient_cases() {
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
      {"row_of_seven", {2, 16, 9, 9}, 32, row_of_seven()},
      {"column_of_seven",
       {2, 32, 9, 9},
       16,
       {.kernel_h = 7, .kernel_w = 1, .pad_top = 3, .pad_bottom = 3}},
      {"pad_after_alone", {1, 16, 8, 8}, 16, padded_after()},
  };
}

inline std::vector<GradientCase> gradient_cases_with_bias() {
  std::vector<GradientCase> cases = gradient_cases();
  std::erase_if(cases, [](const GradientCase& gradient_case) { return !gradient_case.bias; });
  return cases;
}

// A kernel with its layout of images.
struct GradientKernel {
  std::string name;
  Layout layout = Layout::nchw16c;
  // Runs it for a case; in: x, dy, out: dw, dbias.
  std::function<void(const GradientCase& gradient_case, Operands o)> run;
  std::function<std::size_t(const GradientCase& gradient_case)> workspace;
};

template <class Work, class Problem>
GradientKernel gradient_kernel(const layers::cpu::Loops& loops, Layout layout) {
  return {.name = loops.name,
          .layout = layout,
          .run = [&loops, layout](
                     const GradientCase& gradient_case,
                     const Operands& o) { Work(gradient_case.problem<Problem>(layout), loops)(o); },
          .workspace =
              [&loops, layout](const GradientCase& gradient_case) {
                return Work(gradient_case.problem<Problem>(layout), loops).workspace();
              }};
}

// Operands in the kernel's layout, and its results, which are NaN before it runs.
struct GradientRun {
  explicit GradientRun(const GradientCase& gradient_case)
      : x(draws({gradient_case.x.elements()}, DataType::f32, 1)),
        dy(draws({gradient_case.y().elements()}, DataType::f32, 2)),
        dw(constant({gradient_case.filters * gradient_case.in_blocks() * 16 * gradient_case.taps()},
                    std::nanf(""))),
        bias(constant({gradient_case.filters}, std::nanf(""))) {
    round_to(DataType::bf16, x.view());
    round_to(DataType::bf16, dy.view());
  }

  void run(const GradientCase& gradient_case, const GradientKernel& kernel, int threads) {
    const Threads team(threads);
    const std::size_t bytes = kernel.workspace(gradient_case);
    const HostTensor workspace = constant({static_cast<std::int64_t>(bytes / 4)}, std::nanf(""));
    const HostTensor x_words = bf16_words(x), dy_words = bf16_words(dy);
    kernel.run(gradient_case, {.in = {x_words.view(), dy_words.view()},
                               .out = {dw.view(), bias.view()},
                               .workspace = {workspace.view().data, bytes}});
    EXPECT_TRUE(workspace.guard_is_intact());
    EXPECT_TRUE(dw.guard_is_intact());
    EXPECT_TRUE(bias.guard_is_intact());
  }

  HostTensor x, dy, dw, bias;
};

// The place of channel c of a pixel of an image.
struct Pixel {
  std::int64_t image, row, column;
};
inline std::size_t place(const Shape& shape, Layout layout, const Pixel& pixel, std::int64_t c) {
  const TensorDesc desc{.shape = shape, .layout = layout};
  return static_cast<std::size_t>(
      layers::cpu::Place(desc)(pixel.image, c, pixel.row * shape[3] + pixel.column));
}

// Visits the pixels of dy that one tap of the window joins with a pixel of x.
template <class Visit>
void each_pixel(const GradientCase& gradient_case, std::int64_t r, std::int64_t s,
                const Visit& visit) {
  const Shape y = gradient_case.y();
  const layers::Window& window = gradient_case.window;
  for (std::int64_t n = 0; n < y[0]; ++n) {
    for (std::int64_t p = 0; p < y[2]; ++p) {
      for (std::int64_t q = 0; q < y[3]; ++q) {
        const Pixel x{n, p * window.stride_h + r - window.pad_top,
                      q * window.stride_w + s - window.pad_left};
        if (x.row >= 0 && x.row < gradient_case.x[2] && x.column >= 0 &&
            x.column < gradient_case.x[3]) {
          visit(Pixel{n, p, q}, x);
        }
      }
    }
  }
}

inline double distance(float got, double expected) {
  return std::isnan(got) ? INFINITY : std::abs(static_cast<double>(got) - expected);
}

// The largest error of one tap of the gradient.
inline double worst_of_tap(const GradientCase& gradient_case, const GradientRun& run, Layout layout,
                           std::int64_t r, std::int64_t s) {
  const auto x = run.x.view().as<float>(), dy = run.dy.view().as<float>(),
             dw = run.dw.view().as<float>();
  const std::int64_t tap = r * gradient_case.window.kernel_w + s;
  double worst = 0;
  for (std::int64_t o = 0; o < gradient_case.filters; ++o) {
    for (std::int64_t i = o % 7; i < gradient_case.x[1]; i += 7) {
      double sum = 0;
      each_pixel(gradient_case, r, s, [&](const Pixel& dy_pixel, const Pixel& x_pixel) {
        sum += static_cast<double>(x[place(gradient_case.x, layout, x_pixel, i)]) *
               static_cast<double>(dy[place(gradient_case.y(), layout, dy_pixel, o)]);
      });
      const std::int64_t tile =
          (o / 16 * gradient_case.in_blocks() + i / 16) * gradient_case.taps() + tap;
      const float got = dw[static_cast<std::size_t>((tile * 16 + i % 16) * 16 + o % 16)];
      worst = std::max(worst, distance(got, sum));
    }
  }
  return worst;
}

inline void expect_sums_for_each_tap(const GradientCase& gradient_case,
                                     const GradientKernel& kernel) {
  GradientRun run(gradient_case);
  run.run(gradient_case, kernel, 2);
  for (std::int64_t r = 0; r < gradient_case.window.kernel_h; ++r) {
    for (std::int64_t s = 0; s < gradient_case.window.kernel_w; ++s) {
      EXPECT_LT(worst_of_tap(gradient_case, run, kernel.layout, r, s), 1e-4)
          << r << ", " << s << " " << kernel.name;
    }
  }
}

inline void expect_sums_of_bias(const GradientCase& gradient_case, const GradientKernel& kernel) {
  const Shape y = gradient_case.y();
  GradientRun run(gradient_case);
  run.run(gradient_case, kernel, 2);
  for (std::int64_t o = 0; o < gradient_case.filters; ++o) {
    double sum = 0;
    for (std::int64_t n = 0; n < y[0]; ++n) {
      for (std::int64_t p = 0; p < y[2] * y[3]; ++p) {
        const std::size_t at = place(y, kernel.layout, {n, p / y[3], p % y[3]}, o);
        sum += static_cast<double>(run.dy.view().as<float>()[at]);
      }
    }
    const float got = run.bias.view().as<float>()[static_cast<std::size_t>(o)];
    EXPECT_LT(distance(got, sum), 1e-4) << o << " " << kernel.name;
  }
}

inline void expect_same_bits(const GradientCase& gradient_case, const GradientKernel& kernel) {
  GradientRun one(gradient_case);
  one.run(gradient_case, kernel, 1);
  for (const int threads : {2, 3, 16}) {
    GradientRun many(gradient_case);
    many.run(gradient_case, kernel, threads);
    EXPECT_FALSE(difference(one.dw.view(), many.dw.view(), 0)) << threads << " " << kernel.name;
    EXPECT_FALSE(difference(one.bias.view(), many.bias.view(), 0)) << threads << " " << kernel.name;
  }
}

inline void expect_numbers_that_are_not_finite(const GradientCase& gradient_case,
                                               const GradientKernel& kernel) {
  for (const float value : {std::nanf(""), std::numeric_limits<float>::infinity()}) {
    GradientRun run(gradient_case);
    const Shape y = gradient_case.y();
    const std::size_t at = place(y, kernel.layout, {0, y[2] / 2, y[3] / 2}, 3);
    run.dy.view().as<float>()[at] = value;
    run.run(gradient_case, kernel, 2);
    const std::int64_t centre = gradient_case.window.kernel_h / 2 * gradient_case.window.kernel_w +
                                gradient_case.window.kernel_w / 2;
    const auto dw = run.dw.view().as<float>();
    EXPECT_FALSE(std::isfinite(dw[static_cast<std::size_t>(centre * 256 + 3)])) << kernel.name;
    EXPECT_TRUE(std::isfinite(dw[static_cast<std::size_t>(centre * 256 + 4)])) << kernel.name;
  }
}

}  // namespace cnn::tests
