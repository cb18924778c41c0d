#include "bench/machine/assumed_kernels.h"

#include <gtest/gtest.h>
#include <optional>
#include <vector>

#include "layers/activation.h"
#include "layers/all_reduce.h"
#include "layers/batch_norm.h"
#include "layers/concat.h"
#include "layers/conv.h"
#include "layers/dense.h"
#include "layers/fused_conv.h"
#include "layers/row_slice.h"
#include "runtime/error.h"

namespace cnn::bench {
namespace {

std::optional<KernelSpec> assumed(const Op& op, const Signature& request) {
  KernelTable table;
  add_assumed_kernels(table);
  return table.describe(op, request);
}

TensorDesc half_image(std::int64_t channels) {
  return {.shape = {2, channels, 4, 4}, .type = DataType::f16, .layout = Layout::nhwc};
}

// Returns the signature of a 1 x 1 convolution from `channels` to eight channels.
Signature convolving(std::int64_t channels, DataType type, bool bias = false) {
  Signature request{.in = {half_image(channels), {.shape = {8, channels, 1, 1}}},
                    .out = {half_image(8)}};
  request.in[0].type = request.out[0].type = type;
  if (bias) {
    request.in.push_back({.shape = {8}});
  }
  return request;
}

TEST(AssumedKernels, TakeImagesWithChannelsInnermost) {
  const Signature request{.in = {{.shape = {2, 8, 4, 4}, .layout = Layout::nchw}},
                          .out = {{.shape = {2, 8, 4, 4}, .layout = Layout::nchw}}};
  const auto spec = assumed(layers::Relu(), request);
  ASSERT_TRUE(spec.has_value());
  EXPECT_EQ(spec->in[0].layout, Layout::nhwc);
  EXPECT_EQ(spec->out[0].layout, Layout::nhwc);
}

TEST(AssumedKernels, KeepGatesOfRelusAsBitsOfEightChannels) {
  const auto norm_of = [](std::int64_t channels, DataType type) {
    TensorDesc image = half_image(channels);
    image.type = type;
    const TensorDesc vector{.shape = {channels}};
    return assumed(layers::BatchNorm({.relu = true, .residual = true, .mask = true}),
                   {.in = {image, vector, image}, .out = {image, vector, vector, image}});
  };
  EXPECT_TRUE(norm_of(16, DataType::f16).has_value());
  EXPECT_TRUE(norm_of(16, DataType::bf16).has_value());
  EXPECT_FALSE(norm_of(12, DataType::f16).has_value());
  EXPECT_TRUE(norm_of(16, DataType::f32).has_value());
  EXPECT_FALSE(norm_of(12, DataType::f32).has_value());
}

TEST(AssumedKernels, TakeWeightsInTheTypeOfTheImages) {
  const auto spec = assumed(layers::Conv2d({.bias = true}), convolving(16, DataType::f16, true));
  ASSERT_TRUE(spec.has_value());
  EXPECT_EQ(spec->in[1].type, DataType::f16);
  EXPECT_EQ(spec->in[2].type, DataType::f16) << "the engine adds the bias";
  EXPECT_EQ(spec->by, Provider::cudnn);
  EXPECT_EQ(spec->workspace, 0U) << "the workspace of engines is unknown";
  EXPECT_EQ(spec->extra_traffic, 0U);
}

TEST(AssumedKernels, CopyRowsInsideOfAConcatenation) {
  TensorDesc part = half_image(16);
  part.pitch = 48;
  TensorDesc rows = part;
  rows.shape[2] = 2;
  const auto spec = assumed(layers::SliceRows(1, 2), {.in = {part}, .out = {rows}});
  ASSERT_TRUE(spec.has_value());
  EXPECT_EQ(spec->in[0], part);
  EXPECT_EQ(spec->out[0], rows);
}

// Padding adds a fourth channel of two bytes to the image of 2 x 4 x 4 pixels and to the eight
// filters.
TEST(AssumedKernels, PadImagesOfThreeChannels) {
  const auto spec = assumed(layers::Conv2d({}), convolving(3, DataType::f16));
  ASSERT_TRUE(spec.has_value());
  constexpr std::size_t padded = std::size_t{32 + 8} * 4 * 2;
  EXPECT_EQ(spec->workspace, padded);
  EXPECT_EQ(spec->extra_traffic, 2 * padded) << "the padded operand is written once and read once";
  EXPECT_EQ(assumed(layers::Conv2d({}), convolving(3, DataType::f32))->workspace, 0U);
}

TEST(AssumedKernels, PassAReluWithoutABiasOnToAKernelOfOurs) {
  const Signature request = convolving(16, DataType::f16);
  EXPECT_EQ(assumed(layers::Conv2d({.relu = true}), request)->extra_traffic,
            2 * request.out[0].bytes());
}

TEST(AssumedKernels, ReadPixelsThatLieApartOnlyWhereTheyBeginAtSixteenBytes) {
  Signature request = convolving(16, DataType::f16);
  request.in[0].pitch = 40;
  EXPECT_EQ(assumed(layers::Conv2d({}), request)->in[0].pitch, 40);
  request.in[0].pitch = 36;
  EXPECT_EQ(assumed(layers::Conv2d({}), request)->in[0].pitch, 0);
}

TEST(AssumedKernels, GiveProductsTheWorkspaceOfTheLibrary) {
  const Signature request{.in = {{.shape = {4, 8}, .type = DataType::f16}, {.shape = {8, 16}}},
                          .out = {{.shape = {4, 16}, .type = DataType::f16}}};
  const auto spec = assumed(layers::Dense({.bias = false, .relu = false}), request);
  ASSERT_TRUE(spec.has_value());
  EXPECT_EQ(spec->workspace, std::size_t{32} << 20U);
  EXPECT_EQ(spec->in[1].type, DataType::f16);
  EXPECT_EQ(spec->by, Provider::cublas);
}

TEST(AssumedKernels, HaveNoEnginesThatDoTheWorkOfBatchNorms) {
  EXPECT_FALSE(
      assumed(layers::FusedConv({.statistics = true}), convolving(16, DataType::f16)).has_value());
}

TEST(AssumedKernels, ExchangeNothingUnlessAskedTo) {
  const layers::AllReduce op(0, 1);
  const Signature request{.in = {{.shape = {8}}}, .out = {{.shape = {8}}}};
  EXPECT_FALSE(assumed(op, request).has_value());
  KernelTable table;
  add_assumed_exchange(table);
  const auto spec = table.describe(op, request);
  ASSERT_TRUE(spec.has_value());
  EXPECT_EQ(spec->out, request.in) << "gradients stay in place";
}

TEST(AssumedKernels, CannotBeMade) {
  KernelTable table;
  add_assumed_kernels(table);
  const Signature request = convolving(16, DataType::f16);
  const auto spec = table.describe(layers::Conv2d({}), request);
  ASSERT_TRUE(spec.has_value());
  EXPECT_THROW(table.make(layers::Conv2d({}), {.in = spec->in, .out = spec->out}), Error);
}

}  // namespace
}  // namespace cnn::bench
