#include "layers/fused_conv.h"

#include <gtest/gtest.h>

#include "layers/cuda/cudnn/kernels.h"
#include "tests/layers/cuda/cudnn/h200.h"

namespace cnn::tests {
namespace {

using layers::cuda::Libraries;

KernelTable table() {
  KernelTable result;
  layers::cuda::add_library_kernels(
      result, std::make_shared<Libraries>(h200(), layers::cuda::LibraryOptions{}));
  return result;
}

TensorDesc image(Shape shape, DataType type) {
  return {.shape = shape, .type = type, .layout = Layout::nhwc};
}
TensorDesc vector(std::int64_t channels, DataType type = DataType::f32) {
  return {.shape = {channels}, .type = type};
}

constexpr layers::Window same_3x3{
    .kernel_h = 3, .kernel_w = 3, .pad_top = 1, .pad_bottom = 1, .pad_left = 1, .pad_right = 1};
const Shape x_shape{256, 64, 56, 56};
const Shape w_shape{64, 64, 3, 3};

std::optional<KernelSpec> forward(const layers::FusedConvAttributes& attributes, DataType type) {
  Signature request{.in = {image(x_shape, type), image(w_shape, DataType::f32)},
                    .out = {image(x_shape, type)}};
  if (attributes.prologue) {
    request.in.insert(request.in.end(), 2, vector(64, type));
  }
  if (attributes.statistics) {
    request.out.insert(request.out.end(), 2, vector(64));
  }
  return table().describe(layers::FusedConv(attributes), request);
}

TEST(FusedConv, RunsInF16OnHopper) {
  for (const bool prologue : {false, true}) {
    const auto spec = forward({same_3x3, prologue, true}, DataType::f16);
    ASSERT_TRUE(spec) << prologue;
    EXPECT_EQ(spec->extra_traffic, 0U);
    EXPECT_EQ(spec->in[1], image(w_shape, DataType::f16));
    EXPECT_EQ(spec->out[1], vector(64));
  }
}

TEST(FusedConv, KeepsUnwantedSumsInItsWorkspace) {
  const auto with = forward({same_3x3, true, true}, DataType::f16);
  const auto without = forward({same_3x3, true, false}, DataType::f16);
  ASSERT_TRUE(with && without);
  EXPECT_EQ(without->workspace, with->workspace + std::size_t{512});
  EXPECT_EQ(without->out.size(), 1U);
}

TEST(FusedConv, ExistsInNoOtherType) {
  EXPECT_FALSE(forward({same_3x3, true, true}, DataType::bf16));
  EXPECT_FALSE(forward({same_3x3, true, true}, DataType::f32));
}

// No engine supports both asymmetric padding and sums.
TEST(FusedConv, LeavesUnevenPaddingToPlainConvolutions) {
  layers::Window window = same_3x3;
  window.pad_top = 0;
  window.pad_bottom = 2;
  EXPECT_FALSE(forward({window, false, true}, DataType::f16));
}

TEST(FusedConv, GivesWeightGradientsInF32) {
  const layers::FusedConvBackwardWeights op(same_3x3, w_shape);
  const auto spec =
      table().describe(op, {.in = {image(x_shape, DataType::f16), vector(64, DataType::f16),
                                   vector(64, DataType::f16), image(x_shape, DataType::f16)},
                            .out = {image(w_shape, DataType::f32)}});
  ASSERT_TRUE(spec);
  EXPECT_EQ(spec->out[0], image(w_shape, DataType::f32));
  EXPECT_GE(spec->workspace, std::size_t{73728});
  EXPECT_EQ(spec->extra_traffic, 2U * 64 * 64 * 9 * 2);
}

TEST(FusedConv, GoesBackThroughANormAndSumsUpItsGradient) {
  const layers::ConvBackwardDataNorm op(same_3x3);
  Signature request{.in = {image(x_shape, DataType::f16), image(w_shape, DataType::f32),
                           image(x_shape, DataType::f16)},
                    .out = {image(x_shape, DataType::f16)}};
  request.in.insert(request.in.end(), 4, vector(64));
  request.out.insert(request.out.end(), 5, vector(64));
  const auto spec = table().describe(op, request);
  ASSERT_TRUE(spec);
  EXPECT_EQ(spec->in[1], image(w_shape, DataType::f16));
  EXPECT_EQ(spec->out[5], vector(64));
}

}  // namespace
}  // namespace cnn::tests
