#include "layers/cpu/pointwise_gradient.h"

#include <algorithm>
#include <cmath>
#include <gtest/gtest.h>
#include <string>
#include <vector>

#include "tests/layers/cpu/own_kernels.h"
#include "tests/support/numeric.h"

namespace cnn::tests {
namespace {

using layers::cpu::Loops;
using layers::cpu::PointwiseProblem;
using layers::cpu::PointwiseWeightsGradient;

struct PointwiseCase {
  std::string name;
  Shape x;
  std::int64_t filters;
  bool bias = false;
  Layout layout = Layout::nchw16c;
  std::int64_t stride_h = 1, stride_w = 1;
  DataType type = DataType::f32;

  Shape y() const {
    return {x[0], filters, (x[2] + stride_h - 1) / stride_h, (x[3] + stride_w - 1) / stride_w};
  }
  PointwiseProblem problem() const {
    return {.x = {.shape = x, .type = type, .layout = layout},
            .y = {.shape = y(), .type = type, .layout = layout},
            .bias = bias,
            .stride_h = stride_h,
            .stride_w = stride_w};
  }
};

// The shapes differ in image segments, slabs of channels and partial groups of pixels.
std::vector<PointwiseCase> pointwise_cases() {
  return {
      {"one_block", {1, 16, 10, 10}, 16},
      {"three_blocks_of_outputs", {2, 32, 11, 10}, 48, true},
      {"two_segments", {2, 48, 17, 17}, 32, true},
      {"one_row", {1, 32, 1, 113}, 32, true},
      {"one_column", {2, 16, 113, 1}, 80},
      {"segments_of_a_prime", {3, 32, 1, 257}, 32, true},
      {"slabs_of_inputs", {1, 272, 10, 12}, 32, true},
      {"slabs_of_outputs", {1, 32, 12, 10}, 528, true},
      {"slabs_of_both", {2, 272, 8, 8}, 288, true},
      {"many_parts", {2, 32, 56, 56}, 64, true},
      {"nhwc", {2, 32, 11, 10}, 48, true, Layout::nhwc},
      {"nhwc_of_one_pixel", {3, 48, 1, 1}, 32, true, Layout::nhwc},
      {"nhwc_segments", {3, 48, 17, 17}, 16, true, Layout::nhwc},
      {"nhwc_slabs_of_both", {2, 272, 8, 8}, 288, true, Layout::nhwc},
      {"nhwc_many_parts", {2, 32, 56, 56}, 64, true, Layout::nhwc},
      {"nhwc_stride", {2, 32, 15, 16}, 48, true, Layout::nhwc, 2, 2},
      {"nhwc_two_strides", {3, 32, 10, 29}, 32, false, Layout::nhwc, 3, 2},
      {"blocked_stride", {2, 32, 15, 16}, 48, true, Layout::nchw16c, 2, 2},
      {"bf16_segments", {3, 48, 17, 17}, 16, true, Layout::nchw16c, 1, 1, DataType::bf16},
      {"bf16_slabs_of_both", {2, 272, 8, 8}, 288, true, Layout::nchw16c, 1, 1, DataType::bf16},
      {"bf16_two_strides", {3, 32, 10, 29}, 32, true, Layout::nchw16c, 3, 2, DataType::bf16},
      {"nhwc_bf16_stride", {2, 32, 15, 16}, 48, true, Layout::nhwc, 2, 2, DataType::bf16},
  };
}

// Operands in blocked layout and the kernel's results, which start as NaN.
struct PointwiseRun {
  PointwiseRun(const PointwiseCase& pointwise_case, const Loops& loops, int threads)
      : x(draws({pointwise_case.x.elements()}, pointwise_case.type, 1)),
        dy(draws({pointwise_case.y().elements()}, pointwise_case.type, 2)),
        dw(constant({pointwise_case.filters * pointwise_case.x[1]}, std::nanf(""))),
        bias(constant({pointwise_case.filters}, std::nanf(""))) {
    const Threads team(threads);
    const PointwiseWeightsGradient work(pointwise_case.problem(), loops);
    const auto bytes = static_cast<std::int64_t>(work.workspace());
    const HostTensor workspace = constant({bytes / 4}, std::nanf(""));
    const HostTensor stored_x = in_type(pointwise_case.type, x);
    const HostTensor stored_dy = in_type(pointwise_case.type, dy);
    work({.in = {stored_x.view(), stored_dy.view()},
          .out = {dw.view(), bias.view()},
          .workspace = {workspace.view().data, work.workspace()}});
    EXPECT_TRUE(workspace.guard_is_intact());
    EXPECT_TRUE(dw.guard_is_intact());
    EXPECT_TRUE(bias.guard_is_intact());
  }

  HostTensor x, dy, dw, bias;  // in f32
};

// Returns the sum over all pixels of dy[out] * x[in], or of dy[out] if in is negative.
double expected_sum(const PointwiseCase& pointwise_case, const PointwiseRun& run, std::int64_t out,
                    std::int64_t in) {
  const auto x = run.x.view().as<float>(), dy = run.dy.view().as<float>();
  const Shape y = pointwise_case.y();
  double sum = 0;
  for (std::int64_t n = 0; n < pointwise_case.x[0]; ++n) {
    for (std::int64_t p = 0; p < y[2] * y[3]; ++p) {
      const std::int64_t read = p / y[3] * pointwise_case.stride_h * pointwise_case.x[3] +
                                p % y[3] * pointwise_case.stride_w;
      const std::size_t from =
          place_in_image(pointwise_case.x, pointwise_case.layout, n, in < 0 ? 0 : in, read);
      const double factor = in < 0 ? 1 : static_cast<double>(x[from]);
      sum += factor * static_cast<double>(dy[place_in_image(y, pointwise_case.layout, n, out, p)]);
    }
  }
  return sum;
}

double deviation(float got, double expected) {
  return std::isnan(got) ? INFINITY : std::abs(static_cast<double>(got) - expected);
}

class PointwiseGradient : public testing::TestWithParam<PointwiseCase> {};
class PointwiseGradientWithBias : public PointwiseGradient {};
class PointwiseGradientWithoutPacking : public PointwiseGradient {};

TEST_P(PointwiseGradient, IsTheSumOverAllPixels) {
  const PointwiseCase& pointwise_case = GetParam();
  for (const Loops* loops : runnable_loops()) {
    const PointwiseRun run(pointwise_case, *loops, 2);
    const auto dw = run.dw.view().as<float>();
    double worst = 0;
    for (std::int64_t o = 0; o < pointwise_case.filters; ++o) {
      for (std::int64_t i = o % 7; i < pointwise_case.x[1]; i += o % 16 == 0 ? 1 : 7) {
        const std::int64_t tile = o / 16 * (pointwise_case.x[1] / 16) + i / 16;
        const float got = dw[static_cast<std::size_t>((tile * 16 + i % 16) * 16 + o % 16)];
        worst = std::max(worst, deviation(got, expected_sum(pointwise_case, run, o, i)));
      }
    }
    EXPECT_LT(worst, 2e-4) << loops->name;
  }
}

TEST_P(PointwiseGradientWithBias, SumsTheBiasOverAllPixels) {
  const PointwiseCase& pointwise_case = GetParam();
  for (const Loops* loops : runnable_loops()) {
    const PointwiseRun run(pointwise_case, *loops, 2);
    for (std::int64_t o = 0; o < pointwise_case.filters; ++o) {
      const float got = run.bias.view().as<float>()[static_cast<std::size_t>(o)];
      EXPECT_LT(deviation(got, expected_sum(pointwise_case, run, o, -1)), 1e-4)
          << o << " " << loops->name;
    }
  }
}

TEST_P(PointwiseGradient, HasTheSameBitsWithAnyNumberOfThreads) {
  for (const Loops* loops : runnable_loops()) {
    const PointwiseRun one(GetParam(), *loops, 1);
    for (const int threads : {2, 3, 16}) {
      const PointwiseRun many(GetParam(), *loops, threads);
      EXPECT_FALSE(difference(one.dw.view(), many.dw.view(), 0)) << threads << " " << loops->name;
      EXPECT_FALSE(difference(one.bias.view(), many.bias.view(), 0))
          << threads << " " << loops->name;
    }
  }
}

// A kernel that packs needs memory for the pixels of each thread.
TEST_P(PointwiseGradientWithoutPacking, NeedsTheSameWorkspaceWithAnyNumberOfThreads) {
  const Loops& loops = *runnable_loops().back();
  const auto workspace = [&](int threads) {
    const Threads team(threads);
    return PointwiseWeightsGradient(GetParam().problem(), loops).workspace();
  };
  EXPECT_EQ(workspace(1), workspace(16));
}

template <class Has>
std::vector<PointwiseCase> pointwise_cases_with(const Has& has) {
  std::vector<PointwiseCase> cases = pointwise_cases();
  std::erase_if(cases, [&](const PointwiseCase& pointwise_case) { return !has(pointwise_case); });
  return cases;
}

std::string name_of_case(const testing::TestParamInfo<PointwiseCase>& info) {
  return info.param.name;
}
INSTANTIATE_TEST_SUITE_P(Shapes, PointwiseGradient, testing::ValuesIn(pointwise_cases()),
                         name_of_case);
INSTANTIATE_TEST_SUITE_P(Shapes, PointwiseGradientWithBias,
                         testing::ValuesIn(pointwise_cases_with([](const PointwiseCase& of) {
                           return of.bias;
                         })),
                         name_of_case);
INSTANTIATE_TEST_SUITE_P(Shapes, PointwiseGradientWithoutPacking,
                         testing::ValuesIn(pointwise_cases_with([](const PointwiseCase& of) {
                           return !of.problem().packs();
                         })),
                         name_of_case);

}  // namespace
}  // namespace cnn::tests
