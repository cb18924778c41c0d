#include "layers/cpu/pointwise_conv.h"

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

using layers::cpu::Loops;
using layers::cpu::PointwiseConvolution;
using layers::cpu::PointwiseConvProblem;

struct ProductCase {
  std::string name;
  Shape x;
  std::int64_t filters;
  std::int64_t stride_h = 1, stride_w = 1;
  DataType type = DataType::f32;
  Layout layout = Layout::nhwc;
  bool epilogue = false;  // bias, residual and ReLU

  Shape y() const {
    return {x[0], filters, (x[2] + stride_h - 1) / stride_h, (x[3] + stride_w - 1) / stride_w};
  }
  PointwiseConvProblem problem(bool backward) const {
    const bool has_epilogue = epilogue && !backward;
    return {.x = {.shape = x, .type = type, .layout = layout},
            .y = {.shape = y(), .type = type, .layout = layout},
            .stride_h = stride_h,
            .stride_w = stride_w,
            .backward = backward,
            .bias = has_epilogue,
            .residual = has_epilogue,
            .relu = has_epilogue};
  }
};

// The shapes differ in groups of pixels, parts of the depth, halves of a panel and strides that
// leave pixels at the edge unread.
std::vector<ProductCase> product_cases() {
  return {
      {"one_block", {1, 16, 1, 1}, 16},
      {"few_pixels", {1, 32, 1, 5}, 48},
      {"one_tile", {2, 48, 3, 4}, 32},
      {"many_tiles", {2, 16, 17, 13}, 80},
      {"deep", {1, 528, 5, 5}, 32},
      {"wide", {1, 32, 5, 5}, 528},
      {"slabs", {1, 48, 3, 3}, 256},
      {"stride", {2, 48, 7, 10}, 32, 2, 2},
      {"stride_of_rows", {3, 32, 8, 5}, 16, 3, 1},
      {"stride_of_columns", {2, 16, 5, 11}, 48, 1, 3},
      {"stride_of_one_pixel", {2, 32, 2, 2}, 32, 2, 2},
      {"epilogue", {2, 48, 3, 11}, 32, 1, 1, DataType::f32, Layout::nhwc, true},
      {"blocked", {2, 48, 3, 11}, 32, 1, 1, DataType::f32, Layout::nchw16c, true},
      {"blocked_runs", {3, 144, 7, 31}, 112, 1, 1, DataType::f32, Layout::nchw16c, true},
      {"blocked_stride", {3, 48, 7, 10}, 32, 2, 2, DataType::f32, Layout::nchw16c, true},
      {"bf16", {3, 48, 17, 13}, 80, 1, 1, DataType::bf16, Layout::nchw16c, true},
      {"bf16_slabs", {1, 528, 3, 3}, 272, 1, 1, DataType::bf16, Layout::nchw16c, true},
      {"bf16_stride", {2, 48, 7, 10}, 32, 2, 2, DataType::bf16, Layout::nchw16c, true},
      {"bf16_stride_of_rows", {3, 32, 8, 5}, 16, 3, 1, DataType::bf16, Layout::nchw16c},
      {"bf16_stride_of_columns", {2, 16, 5, 11}, 48, 1, 3, DataType::bf16, Layout::nchw16c},
      {"bf16_nhwc", {2, 48, 7, 10}, 32, 2, 2, DataType::bf16, Layout::nhwc, true},
  };
}

// Returns the offset of weight [out][in] in the kernels' order.
std::size_t place_of_weight(const ProductCase& product_case, std::int64_t out, std::int64_t in) {
  return static_cast<std::size_t>((out / 16 * product_case.x[1] + in) * 16 + out % 16);
}

// Operands and the kernel's result, which starts as NaN; all in f32, in the order of the layout.
struct ProductRun {
  ProductRun(const ProductCase& product_case, const Loops& loops, bool backward, int threads,
             float planted = 0)
      : image(draws({(backward ? product_case.y() : product_case.x).elements()}, product_case.type,
                    1)),
        w(draws({product_case.filters * product_case.x[1]}, DataType::f32, 2)),
        bias(draws({product_case.filters}, DataType::f32, 3)),
        residual(draws({product_case.y().elements()}, product_case.type, 4)),
        result(
            constant({(backward ? product_case.x : product_case.y()).elements()}, std::nanf(""))) {
    if (planted != 0) {
      image.view().as<float>()[3] = planted;
    }
    const Threads team(threads);
    const PointwiseConvolution work(product_case.problem(backward), loops);
    const auto bytes = static_cast<std::int64_t>(work.workspace());
    const HostTensor workspace = constant({std::max<std::int64_t>(1, bytes / 4)}, std::nanf(""));
    const HostTensor stored_image = in_type(product_case.type, image),
                     stored_residual = in_type(product_case.type, residual),
                     stored_result = in_type(product_case.type, result);
    Operands operands{.in = {stored_image.view(), w.view()},
                      .out = {stored_result.view()},
                      .workspace = {workspace.view().data, work.workspace()}};
    if (product_case.problem(backward).bias) {
      operands.in.push_back(bias.view());
      operands.in.push_back(stored_residual.view());
    }
    work(operands);
    EXPECT_TRUE(workspace.guard_is_intact());
    EXPECT_TRUE(stored_result.guard_is_intact());
    unpack(stored_result.view(), result.view());
  }

  HostTensor image, w, bias, residual, result;
};

// Returns y or dx by plain loops in double.
std::vector<double> expected(const ProductCase& product_case, const ProductRun& run,
                             bool backward) {
  const Shape x = product_case.x, y = product_case.y();
  const auto from = run.image.view().as<float>(), w = run.w.view().as<float>();
  std::vector<double> result(static_cast<std::size_t>((backward ? x : y).elements()));
  for (std::int64_t pixel = 0; pixel < y[0] * y[2] * y[3]; ++pixel) {
    const std::int64_t n = pixel / (y[2] * y[3]), p = pixel / y[3] % y[2], q = pixel % y[3];
    const std::int64_t read = p * product_case.stride_h * x[3] + q * product_case.stride_w;
    for (std::int64_t o = 0; o < y[1]; ++o) {
      const std::size_t in_y = place_in_image(y, product_case.layout, n, o, p * y[3] + q);
      for (std::int64_t i = 0; i < x[1]; ++i) {
        const std::size_t in_x = place_in_image(x, product_case.layout, n, i, read);
        result[backward ? in_x : in_y] +=
            static_cast<double>(from[backward ? in_y : in_x]) *
            static_cast<double>(w[place_of_weight(product_case, o, i)]);
      }
      if (product_case.problem(backward).relu) {
        result[in_y] +=
            static_cast<double>(run.bias.view().as<float>()[static_cast<std::size_t>(o)]);
        result[in_y] += static_cast<double>(run.residual.view().as<float>()[in_y]);
        result[in_y] = std::max(0.0, result[in_y]);
      }
    }
  }
  return result;
}

class PointwiseProducts : public testing::TestWithParam<ProductCase> {};

TEST_P(PointwiseProducts, AreSumsOverTheChannels) {
  for (const Loops* loops : runnable_loops()) {
    for (const bool backward : {false, true}) {
      const ProductRun run(GetParam(), *loops, backward, 2);
      const std::vector<double> sums = expected(GetParam(), run, backward);
      const auto got = run.result.view().as<float>();
      // A result in bf16 is rounded to eight bits.
      const double rounding = GetParam().type == DataType::bf16 ? 1.0 / 256 : 0;
      double worst = 0;
      for (std::size_t i = 0; i < sums.size(); ++i) {
        const double error =
            std::abs(static_cast<double>(got[i]) - sums[i]) - rounding * std::abs(sums[i]);
        worst = std::isnan(error) ? INFINITY : std::max(worst, error);
      }
      EXPECT_LT(worst, 1e-4) << loops->name << (backward ? " backward" : "");
    }
  }
}

TEST_P(PointwiseProducts, HaveTheSameBitsWithAnyNumberOfThreads) {
  for (const Loops* loops : runnable_loops()) {
    for (const bool backward : {false, true}) {
      const ProductRun one(GetParam(), *loops, backward, 1);
      for (const int threads : {2, 3, 16}) {
        const ProductRun many(GetParam(), *loops, backward, threads);
        EXPECT_FALSE(difference(one.result.view(), many.result.view(), 0))
            << threads << " " << loops->name << (backward ? " backward" : "");
      }
    }
  }
}

// Returns whether an element of y or dx belongs to the first pixel.
bool in_first_pixel(const ProductCase& product_case, bool backward, std::size_t element) {
  const Shape shape = backward ? product_case.x : product_case.y();
  const auto channels = static_cast<std::size_t>(shape[1]);
  const auto pixels = static_cast<std::size_t>(shape[2] * shape[3]);
  return product_case.layout == Layout::nhwc
             ? element < channels
             : element < channels * pixels && element / 16 % pixels == 0;
}

// Channel 3 of the first pixel is in every sum of that pixel, and in no other. A ReLU passes NaN,
// but closes for sums that are minus infinity.
TEST_P(PointwiseProducts, KeepNonFiniteValuesInTheirPixel) {
  for (const Loops* loops : runnable_loops()) {
    for (const float planted :
         {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
      for (const bool backward : {false, true}) {
        if (GetParam().problem(backward).relu && !std::isnan(planted)) {
          continue;
        }
        const ProductRun run(GetParam(), *loops, backward, 2, planted);
        const auto got = run.result.view().as<float>();
        for (std::size_t i = 0; i < got.size(); ++i) {
          ASSERT_EQ(std::isfinite(got[i]), !in_first_pixel(GetParam(), backward, i))
              << i << " " << loops->name << (backward ? " backward" : "");
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, PointwiseProducts, testing::ValuesIn(product_cases()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace cnn::tests
