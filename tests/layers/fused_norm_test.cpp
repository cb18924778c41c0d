#include "layers/fused_norm.h"

#include <cmath>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <limits>
#include <vector>

#include "layers/relu_mask.h"
#include "tests/support/error_of.h"
#include "tests/support/literals.h"

namespace cnn::layers {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using tests::error_of;
using tests::floats;
using tests::run;
using tests::tensor;

constexpr float norm_nan = std::numeric_limits<float>::quiet_NaN();

TEST(ChannelSums, AddsOverImagesAndPixels) {
  const auto out = run(ChannelSums(), tensor({2, 2, 1, 2}, {1, 2, 10, 20, 3, -4, 30, 40}));
  EXPECT_THAT(floats(out[0]), ElementsAre(2, 100));
  EXPECT_THAT(floats(out[1]), ElementsAre(30, 3000));
}

TEST(FinishStatistics, GivesSlopesAndOffsetsOfBatchNorm) {
  const auto out = run(FinishStatistics(4, 0.75, DataType::f32), tensor({1}, {8}),
                       tensor({1}, {17}), tensor({1}, {3}), tensor({1}, {5}));
  ASSERT_EQ(out.size(), 5U);
  EXPECT_FLOAT_EQ(floats(out[0])[0], 2) << "mean";
  EXPECT_FLOAT_EQ(floats(out[1])[0], 0.25) << "variance";
  EXPECT_FLOAT_EQ(floats(out[2])[0], 1) << "1 / sqrt(variance + epsilon)";
  EXPECT_FLOAT_EQ(floats(out[3])[0], 3);
  EXPECT_FLOAT_EQ(floats(out[4])[0], -1);
}

// Sums in f32 can give a difference below zero, whose root would be NaN.
TEST(FinishStatistics, TakesAVarianceBelowZeroForZeroButKeepsNan) {
  const auto out = run(FinishStatistics(1, 1, DataType::f32), tensor({2}, {3, norm_nan}),
                       tensor({2}, {8.99F, 1}), tensor({2}, {1, 1}), tensor({2}, {0, 0}));
  EXPECT_EQ(floats(out[1])[0], 0);
  EXPECT_EQ(floats(out[2])[0], 1);
  EXPECT_TRUE(std::isnan(floats(out[1])[1])) << "a network that diverged must show";
}

TEST(FinishStatistics, MakesSlopesOf16BitsInF32TooForThoseThatMustAgree) {
  const std::vector<TensorDesc> in(4, {.shape = {3}});
  EXPECT_EQ(FinishStatistics(1, 1, DataType::f32).infer(in).size(), 5U);
  const std::vector<TensorDesc> out = FinishStatistics(1, 1, DataType::bf16).infer(in);
  ASSERT_EQ(out.size(), 7U);
  EXPECT_EQ(out[2].type, DataType::f32);
  EXPECT_EQ(out[3].type, DataType::bf16);
  EXPECT_EQ(out[4].type, DataType::bf16);
  EXPECT_EQ(out[6].type, DataType::f32);
}

TEST(ScaleBias, AddsNothingAnImageOrANormalisedImage) {
  const auto x = tensor({1, 2, 1, 2}, {1, 2, 3, 4}), a = tensor({2}, {2, -1});
  const auto b = tensor({2}, {10, 1}), y = tensor({1, 2, 1, 2}, {100, 200, 300, -500});
  EXPECT_THAT(floats(run(ScaleBias(false, ScaleBias::Residual::none), x, a, b)[0]),
              ElementsAre(12, 14, -2, -3));
  EXPECT_THAT(floats(run(ScaleBias(false, ScaleBias::Residual::image), x, a, b, y)[0]),
              ElementsAre(112, 214, 298, -503));
  EXPECT_THAT(floats(run(ScaleBias(false, ScaleBias::Residual::normalised), x, a, b, y,
                         tensor({2}, {1, 0}), tensor({2}, {0.5F, 7}))[0]),
              ElementsAre(112.5F, 214.5F, 5, 4));
}

TEST(ScaleBias, CutsBelowZeroBehindTheSumAndMarksWhatPasses) {
  const auto out = run(ScaleBias(true, ScaleBias::Residual::image, true),
                       tensor({1, 1, 1, 4}, {-5, -5, norm_nan, 1}), tensor({1}, {1}),
                       tensor({1}, {0}), tensor({1, 1, 1, 4}, {6, 4, 0, -1}));
  EXPECT_EQ(floats(out[0])[0], 1) << "the sum is above zero";
  EXPECT_EQ(floats(out[0])[1], 0);
  EXPECT_TRUE(std::isnan(floats(out[0])[2]));
  const Shape shape{1, 1, 1, 4};
  EXPECT_TRUE(is_gate_open(out[1].view(), shape, 0));
  EXPECT_FALSE(is_gate_open(out[1].view(), shape, 1));
  EXPECT_TRUE(is_gate_open(out[1].view(), shape, 2));
  EXPECT_FALSE(is_gate_open(out[1].view(), shape, 3)) << "zero does not pass";
}

// Against central differences of the batch norm that the sums belong to.
TEST(NormBackwardEnd, IsTheGradientOfBatchNorm) {
  const std::vector<float> x{1, 2.5F, -1, 4}, g{0.5F, -1, 2, 0.25F};
  const double gamma = 1.5, epsilon = 0.25;
  const auto loss = [&](std::vector<double> values) {
    double mean = 0, squares = 0, sum = 0;
    for (const double v : values) {
      mean += v / 4;
      squares += v * v / 4;
    }
    for (std::size_t i = 0; i < 4; ++i) {
      sum += g[i] * gamma * (values[i] - mean) / std::sqrt(squares - mean * mean + epsilon);
    }
    return sum;
  };
  double mean = 0, squares = 0, sum_g = 0, sum_gx = 0;
  for (std::size_t i = 0; i < 4; ++i) {
    mean += x[i] / 4.0;
    squares += x[i] * x[i] / 4.0;
    sum_g += g[i];
    sum_gx += g[i] * x[i];
  }
  const double r = 1 / std::sqrt(squares - mean * mean + epsilon);
  const auto one = [](double v) { return tensor({1}, {static_cast<float>(v)}); };
  const auto out = run(NormBackwardEnd(), tensor({2, 1, 1, 2}, g), tensor({2, 1, 1, 2}, x),
                       one(sum_gx), one(sum_g), one(mean), one(r), one(gamma));
  for (std::size_t i = 0; i < 4; ++i) {
    std::vector<double> more(x.begin(), x.end()), less(more);
    more[i] += 1e-4;
    less[i] -= 1e-4;
    EXPECT_NEAR(floats(out[0])[i], (loss(more) - loss(less)) / 2e-4, 1e-5) << i;
  }
  EXPECT_NEAR(floats(out[1])[0], loss({x.begin(), x.end()}) / gamma, 1e-5) << "dgamma";
}

TEST(FusedNorms, RefuseOperandsThatDoNotBelongTogether) {
  const TensorDesc image{.shape = {1, 2, 3, 3}}, vector{.shape = {2}}, longer{.shape = {3}};
  const auto refusal = [](const Op& op, const std::vector<TensorDesc>& in) {
    return error_of([&] { op.infer(in); });
  };
  EXPECT_THAT(refusal(ChannelSums(), {vector}), HasSubstr("channel_sums: takes real images"));
  EXPECT_THAT(refusal(FinishStatistics(1, 1, DataType::f32), {vector, vector, vector, longer}),
              HasSubstr("f32 vectors of one length"));
  const ScaleBias plain(false, ScaleBias::Residual::none), sum(false, ScaleBias::Residual::image);
  EXPECT_EQ(refusal(plain, {image, vector, vector}), "");
  EXPECT_THAT(refusal(plain, {image, vector, longer}), HasSubstr("[C] of one type"));
  EXPECT_THAT(refusal(plain, {image, vector, vector, image}), HasSubstr("takes 3 operands"));
  TensorDesc half = image;
  half.type = DataType::f16;
  EXPECT_THAT(refusal(sum, {image, vector, vector, half}), HasSubstr("images of one kind"));
  EXPECT_THAT(refusal(NormBackwardEnd(), {image, half, vector, vector, vector, vector, vector}),
              HasSubstr("images of one kind"));
}

TEST(FusedNorms, MayTakeThePlaceOfTheirImages) {
  const ScaleBias op(true, ScaleBias::Residual::normalised, true);
  EXPECT_TRUE(op.may_overwrite(0, 0));
  EXPECT_TRUE(op.may_overwrite(3, 0));
  EXPECT_FALSE(op.may_overwrite(1, 0));
  EXPECT_FALSE(op.may_overwrite(0, 1)) << "the mask";
  EXPECT_TRUE(NormBackwardEnd().may_overwrite(1, 0));
  EXPECT_FALSE(NormBackwardEnd().may_overwrite(2, 0));
}

}  // namespace
}  // namespace cnn::layers
