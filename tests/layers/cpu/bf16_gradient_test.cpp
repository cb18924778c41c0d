#include "layers/cpu/bf16_gradient.h"

#include <gtest/gtest.h>
#include <vector>

#include "tests/layers/cpu/bf16_gradients.h"
#include "tests/layers/cpu/own_kernels.h"

namespace cnn::tests {
namespace {

using layers::cpu::Bf16GradientProblem;
using layers::cpu::Bf16WeightsGradient;
using layers::cpu::Loops;

// The kernel in each instruction set that has its loops.
std::vector<GradientKernel> pair_kernels() {
  std::vector<GradientKernel> all;
  for (const Loops* loops : runnable_loops()) {
    if (loops->bf16_gradient.multiply != nullptr) {
      all.push_back(
          gradient_kernel<Bf16WeightsGradient, Bf16GradientProblem>(*loops, Layout::nchw16c));
    }
  }
  return all;
}

class Bf16Gradient : public testing::TestWithParam<GradientCase> {
 protected:
  void SetUp() override {
    if (pair_kernels().empty()) {
      GTEST_SKIP() << "this processor lacks the instruction";
    }
  }
};

class Bf16GradientWithBias : public Bf16Gradient {};

TEST_P(Bf16Gradient, IsTheSumOverAllPixelsForEachTap) {
  for (const GradientKernel& kernel : pair_kernels()) {
    expect_sums_for_each_tap(GetParam(), kernel);
  }
}

TEST_P(Bf16GradientWithBias, SumsTheBiasOverAllPixels) {
  for (const GradientKernel& kernel : pair_kernels()) {
    expect_sums_of_bias(GetParam(), kernel);
  }
}

TEST_P(Bf16Gradient, HasTheSameBitsWithAnyNumberOfThreads) {
  for (const GradientKernel& kernel : pair_kernels()) {
    expect_same_bits(GetParam(), kernel);
  }
}

TEST_P(Bf16Gradient, ShowsANumberThatIsNotFinite) {
  for (const GradientKernel& kernel : pair_kernels()) {
    expect_numbers_that_are_not_finite(GetParam(), kernel);
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, Bf16Gradient, testing::ValuesIn(gradient_cases()),
                         [](const auto& info) { return info.param.name; });
INSTANTIATE_TEST_SUITE_P(Shapes, Bf16GradientWithBias,
                         testing::ValuesIn(gradient_cases_with_bias()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace cnn::tests
