#include "layers/fused_conv.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <limits>
#include <utility>
#include <vector>

#include "tests/support/host_tensor.h"

namespace cnn::layers {
namespace {

using Floats = std::vector<float>;

struct Plain {
  Shape shape;
  Floats values;
};

// Returns the outputs of the op's loops on these inputs.
std::vector<Floats> outputs_of(const Op& op, const std::vector<Plain>& inputs) {
  std::vector<tests::HostTensor> in, out;
  std::vector<TensorView> in_views, out_views;
  std::vector<TensorDesc> descs;
  for (const Plain& input : inputs) {
    descs.push_back({.shape = input.shape});
    in.emplace_back(descs.back());
    std::ranges::copy(input.values, in.back().view().as<float>().begin());
  }
  for (const TensorDesc& desc : op.infer(descs)) {
    out.emplace_back(desc);
  }
  for (const auto& [tensors, views] : {std::pair(&in, &in_views), std::pair(&out, &out_views)}) {
    for (const tests::HostTensor& tensor : *tensors) {
      views->push_back(tensor.view());
    }
  }
  op.reference(in_views, out_views);
  std::vector<Floats> results;
  for (const TensorView& view : out_views) {
    const auto values = view.as<float>();
    results.emplace_back(values.begin(), values.end());
  }
  return results;
}

// relu(2 x) of the first channel is 2 and 0, relu(x - 2) of the second 0 and 1; weights 1 and 2.
TEST(FusedConv, NormalisesAndClipsItsInputAndSumsItsOutput) {
  EXPECT_EQ(
      outputs_of(
          FusedConv({.window = {}, .prologue = true, .statistics = true}),
          {{{1, 2, 1, 2}, {1, -1, 2, 3}}, {{1, 2, 1, 1}, {1, 2}}, {{2}, {2, 1}}, {{2}, {0, -2}}}),
      (std::vector<Floats>{{2, 2}, {4}, {8}}));
}

TEST(FusedConv, SurroundsTheNormalisedImageByZeros) {
  const Window padded{
      .kernel_h = 3, .kernel_w = 3, .pad_top = 1, .pad_bottom = 1, .pad_left = 1, .pad_right = 1};
  EXPECT_EQ(outputs_of(FusedConv({.window = padded, .prologue = true}),
                       {{{1, 1, 1, 1}, {0}}, {{1, 1, 3, 3}, Floats(9, 1)}, {{1}, {1}}, {{1}, {5}}}),
            (std::vector<Floats>{{5}}));
}

// relu(2 x + 1) is 3 and 0, so the weight's gradient is 3 * 5.
TEST(FusedConvBackwardWeights, TakesTheNormalisedInput) {
  EXPECT_EQ(outputs_of(FusedConvBackwardWeights({}, {1, 1, 1, 1}),
                       {{{1, 1, 1, 2}, {1, -1}}, {{1}, {2}}, {{1}, {1}}, {{1, 1, 1, 2}, {5, 7}}}),
            (std::vector<Floats>{{15}}));
}

// xhat is 1 and -1, and 2 xhat + 0.5 opens the first gate only: g = 4 / 2 and 0. With n = 2:
// dgamma = 2, dbeta = 2, A = 2, B = -2 dgamma / n, C = -B mean - A dbeta / n.
TEST(ConvBackwardDataNorm, GatesTheGradientAndReturnsTheCoefficientsOfTheNorm) {
  EXPECT_EQ(outputs_of(ConvBackwardDataNorm({}), {{{2, 1, 1, 1}, {4, 7}},
                                                  {{1, 1, 1, 1}, {0.5F}},
                                                  {{2, 1, 1, 1}, {3, 1}},
                                                  {{1}, {2}},
                                                  {{1}, {1}},
                                                  {{1}, {2}},
                                                  {{1}, {0.5F}}}),
            (std::vector<Floats>{{2, 0}, {2}, {2}, {2}, {-2}, {2}}));
}

// The outputs of the ReLU are -1, 0 and NaN, and the gradients 4, 7 and 9.
TEST(ConvBackwardDataNorm, ClosesTheGateBelowZeroOnly) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const std::vector<Floats> out =
      outputs_of(ConvBackwardDataNorm({}), {{{3, 1, 1, 1}, {4, 7, 9}},
                                            {{1, 1, 1, 1}, {1}},
                                            {{3, 1, 1, 1}, {-1, 0, nan}},
                                            {{1}, {0}},
                                            {{1}, {1}},
                                            {{1}, {1}},
                                            {{1}, {0}}});
  EXPECT_EQ(out[0], (Floats{0, 7, 9}));
  EXPECT_EQ(out[2], Floats{16}) << "the sum of gated gradients";
}

TEST(FusedConv, CountsTheOperationsOfTheConvolutionAtLeast) {
  const std::vector<TensorDesc> in{{.shape = {2, 8, 4, 4}}, {.shape = {16, 8, 1, 1}}};
  EXPECT_GE(FusedConv({.window = {}}).flops(in), 2.0 * 2 * 16 * 16 * 8);
}

}  // namespace
}  // namespace cnn::layers
