#include "layers/cpu/conv_candidates.h"

#include <algorithm>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <set>
#include <string>
#include <vector>

#include "layers/activation.h"
#include "tests/layers/cpu/small_conv.h"
#include "tests/support/error_of.h"

namespace cnn::tests {
namespace {

using layers::Conv2dBackwardData;
using layers::cpu::conv_key;
using layers::cpu::ConvCandidate;
using layers::cpu::ConvCandidates;
using layers::cpu::images_of;
using layers::cpu::is_weights;
using layers::cpu::preferred_layout;
using testing::Contains;
using testing::HasSubstr;
using testing::Not;

TEST(ConvChoiceOffers, AreTheKernelsThatCanRunTheWindow) {
  const Layer three(3), one(1), strided(3, 2);
  EXPECT_THAT(offered(three.forward(), three.forwards()), Contains("winograd 2x2"));
  EXPECT_THAT(offered(three.forward(), three.forwards()), Contains("winograd 4x4"));
  EXPECT_THAT(offered(three.gradient(), three.gradients()), Contains("winograd 4x4"));
  EXPECT_THAT(offered(three.forward(), three.forwards()), Contains(HasSubstr("onednn")));
  EXPECT_THAT(offered(three.forward(), three.forwards(), false), Not(Contains("winograd 4x4")));
  EXPECT_THAT(offered(strided.forward(), strided.forwards()), Not(Contains(HasSubstr("winograd"))));
  EXPECT_THAT(offered(one.forward(), one.forwards()), Not(Contains(HasSubstr("winograd"))));
  EXPECT_THAT(offered(one.forward(), one.forwards()), Not(Contains("pointwise"))) << "no gradient";
  if (preferred_layout(DataType::f32) == Layout::nhwc) {
    const Layer halving(1, 2);
    for (const Layer& layer : {one, halving}) {
      EXPECT_THAT(offered(layer.forward(), layer.forwards()),
                  testing::IsSupersetOf({"products", "onednn nhwc"}));
      EXPECT_THAT(offered(layer.gradient(), layer.gradients()), Contains("products"))
          << "the rules ask for more channels";
    }
    EXPECT_THAT(offered(three.forward(), three.forwards()), Not(Contains("products")));
  }
  if (here().avx512) {
    EXPECT_THAT(offered(one.gradient(), one.gradients()), Contains("pointwise"))
        << "the rules ask for larger images";
    EXPECT_THAT(offered(one.forward(), one.forwards()),
                testing::IsSupersetOf({"onednn nchw16c", "onednn nhwc"}));
  }
}

TEST(ConvChoiceOffers, HoldTilesForWeightGradientsOfBf16WhichTheRulesTake) {
  if (!here().amx_bf16) {
    GTEST_SKIP() << "this processor lacks amx_bf16";
  }
  for (Layer layer : {Layer(3), Layer(1), Layer(3, 2)}) {
    for (TensorDesc* image : {&layer.x, &layer.y}) {
      image->type = DataType::bf16;
      image->layout = Layout::nhwc;
    }
    EXPECT_THAT(offered(layer.gradient(), layer.gradients()),
                testing::IsSupersetOf({"bf16 tiles", "onednn nhwc"}));
    const ConvCandidates candidates(here(), true);
    const auto rules = candidates.rules().describe(layer.gradient(), layer.gradients());
    ASSERT_TRUE(rules);
    EXPECT_EQ(rules->by, Provider::own);
    EXPECT_EQ(rules->in, layer.gradients().in);
  }
}

TEST(ConvChoiceOffers, HoldTilesForDataGradientsOfBf16WhichTheRulesTakeForStrides) {
  if (!here().amx_bf16) {
    GTEST_SKIP() << "this processor lacks amx_bf16";
  }
  const ConvCandidates candidates(here(), true);
  for (const std::int64_t stride : {1, 2}) {
    const layers::ConvAttributes a = window(3, stride);
    const Shape x{2, 64, 12, 12}, y{2, 32, 12 / stride, 12 / stride};
    const auto image = [](const Shape& shape) {
      return TensorDesc{.shape = shape, .type = DataType::bf16, .layout = Layout::nhwc};
    };
    const Conv2dBackwardData op(a, x);
    const Signature request{.in = {image(y), {.shape = {32, 64, 3, 3}}}, .out = {image(x)}};
    EXPECT_THAT(offered(op, request), testing::IsSupersetOf({"bf16 tiles", "onednn nhwc"}));
    const auto rules = candidates.rules().describe(op, request);
    ASSERT_TRUE(rules);
    EXPECT_EQ(rules->by, stride == 1 ? Provider::onednn : Provider::own);
    const Signature forward{.in = {image(x), {.shape = {32, 64, 3, 3}}}, .out = {image(y)}};
    EXPECT_THAT(offered(layers::Conv2d(a), forward), Contains("bf16 tiles"));
    layers::ConvAttributes with_bias = a;
    with_bias.bias = true;
    Signature biased = forward;
    biased.in.push_back({.shape = {32}});
    EXPECT_THAT(offered(layers::Conv2d(with_bias), biased), Not(Contains("bf16 tiles")));
  }
}

TEST(ConvChoiceOffers, HoldTilesForTheWeightGradientOfAFirstConvolutionInBf16) {
  if (!here().amx_bf16) {
    GTEST_SKIP() << "this processor lacks amx_bf16";
  }
  const layers::ConvAttributes a = window(7, 2);
  const TensorDesc x{.shape = {2, 3, 28, 28}, .type = DataType::bf16, .layout = Layout::nhwc};
  const TensorDesc y{.shape = {2, 64, 14, 14}, .type = DataType::bf16, .layout = Layout::nhwc};
  const layers::Conv2dBackwardWeights op(a, {64, 3, 7, 7});
  const Signature request{.in = {x, y}, .out = {{.shape = {64, 3, 7, 7}}}};
  EXPECT_THAT(offered(op, request), testing::IsSupersetOf({"bf16 tiles", "onednn nhwc"}));
  const ConvCandidates candidates(here(), true);
  const auto rules = candidates.rules().describe(op, request);
  ASSERT_TRUE(rules);
  EXPECT_EQ(rules->by, Provider::own);
}

TEST(ConvChoiceOffers, HoldTheKernelOfTheRules) {
  const ConvCandidates candidates(here(), true);
  const Layer large(3, 1, 56);
  const Signature settled = candidates.settled(large.forward(), large.forwards()).value();
  const KernelSpec rules = candidates.rules().describe(large.forward(), settled).value();
  const auto all = candidates.offers(large.forward(), settled);
  EXPECT_TRUE(std::ranges::any_of(all, [&](const ConvCandidate& each) {
    return each.spec.in == rules.in && each.spec.out == rules.out && each.spec.by == rules.by &&
           each.spec.flops == rules.flops;
  }));
}

TEST(ConvChoiceOffers, HaveDifferentNamesByWhichTheyAreFound) {
  const ConvCandidates candidates(here(), true);
  const Layer layer(3);
  const Signature settled = candidates.settled(layer.forward(), layer.forwards()).value();
  const std::vector<std::string> all = names(candidates.offers(layer.forward(), settled));
  EXPECT_EQ(std::set(all.begin(), all.end()).size(), all.size());
  for (const std::string& name : all) {
    const auto found = candidates.offer(name, layer.forward(), settled);
    ASSERT_TRUE(found) << name;
    EXPECT_EQ(found->name, name);
  }
  EXPECT_FALSE(candidates.offer("winograd 9x9", layer.forward(), settled));
}

TEST(ConvChoiceOffers, AreForARequestThatSettlesAsItself) {
  const ConvCandidates candidates(here(), true);
  const Layer layer(3);
  const Signature once = candidates.settled(layer.forward(), layer.forwards()).value();
  const Signature twice = candidates.settled(layer.forward(), once).value();
  EXPECT_EQ(twice.in, once.in);
  EXPECT_EQ(twice.out, once.out);
}

TEST(ImagesOf, AreTheImageAndItsMapInEachDirection) {
  const Layer layer(3, 2);
  const Conv2dBackwardData data(layer.a, layer.x.shape);
  for (const auto& images : {images_of(layer.forward(), layer.forwards()),
                             images_of(layer.gradient(), layer.gradients()),
                             images_of(data, {.in = {layer.y, layer.w}, .out = {layer.x}})}) {
    EXPECT_EQ(images, (std::vector{layer.x, layer.y}));
  }
}

TEST(IsWeights, HoldsForTheSecondInputOrTheGradientsOutput) {
  const Layer layer(3);
  EXPECT_TRUE(is_weights(layer.forward(), /*input=*/true, 1));
  EXPECT_FALSE(is_weights(layer.forward(), /*input=*/true, 0));
  EXPECT_FALSE(is_weights(layer.forward(), /*input=*/false, 0));
  EXPECT_TRUE(is_weights(layer.gradient(), /*input=*/false, 0));
  EXPECT_FALSE(is_weights(layer.gradient(), /*input=*/true, 1));
}

TEST(ConvKey, NamesTheWindowAndBothImages) {
  Layer layer(3, 2);
  layer.x.layout = layer.y.layout = Layout::nhwc;
  EXPECT_EQ(conv_key(layer.forward(), layer.forwards()),
            "conv 3x3 stride 2x2 pad 1x1,1x1 x f32[2, 16, 12, 12] nhwc y f32[2, 16, 6, 6] nhwc");
  layer.a.bias = layer.a.relu = true;
  EXPECT_THAT(conv_key(layer.forward(), layer.forwards()), HasSubstr("pad 1x1,1x1 bias relu x"));
}

TEST(ConvKey, RefusesAnOpThatIsNoConvolution) {
  const Layer layer(3);
  EXPECT_THAT(error_of([&] {
                static_cast<void>(conv_key(layers::Relu(), {.in = {layer.x}, .out = {layer.x}}));
              }),
              HasSubstr("relu"));
}

}  // namespace
}  // namespace cnn::tests
