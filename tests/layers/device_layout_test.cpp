#include "layers/device_layout.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <memory>

#include "layers/operands.h"
#include "layers/optimizer.h"
#include "tests/support/error_of.h"

namespace cnn::layers {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using tests::error_of;

constexpr std::int64_t max_elements = 2147483647;

TensorDesc image_of_channels(std::int64_t channels, DataType type, std::int64_t pitch = 0) {
  return {.shape = {2, channels, 3, 3}, .type = type, .layout = Layout::nhwc, .pitch = pitch};
}

TEST(RequireIndexable, TakesAsManyElementsAs32BitsCount) {
  EXPECT_EQ(error_of([] { require_indexable(described({max_elements}, DataType::u8)); }), "");
  EXPECT_THAT(error_of([] { require_indexable(described({max_elements + 1}, DataType::u8)); }),
              AllOf(HasSubstr("2147483648 elements"), HasSubstr("at most 2147483647"),
                    HasSubstr("make the batch or the image smaller")));
  EXPECT_EQ(error_of([] { require_indexable(described({}, DataType::f32)); }), "");
}

TEST(RequireIndexable, CountsTheGapsBetweenPixels) {
  TensorDesc image = image_of_channels(1, DataType::f32);
  image.shape[0] = 1 << 16;  // multiplied by 9 pixels
  EXPECT_EQ(error_of([&] { require_indexable(image); }), "");
  image.pitch = max_elements / 9 / (1 << 16);
  EXPECT_EQ(error_of([&] { require_indexable(image); }), "");
  ++image.pitch;
  EXPECT_THAT(error_of([&] { require_indexable(image); }), HasSubstr("pitch"));
}

TEST(InNhwc, PutsChannelsInnermostWithoutGapsAndLeavesTheRestRowMajor) {
  Signature request{
      .in = {image_of_channels(8, DataType::bf16, 32), described({5, 3}, DataType::f32)},
      .out = {image_of_channels(8, DataType::f16)}};
  request.in[1].layout = Layout::packed;
  request.in[1].packing = std::make_shared<const Packing>(Packing{.backend = "onednn", .tag = "x"});
  request.out[0].layout = Layout::nchw16c;
  const KernelSpec spec = in_nhwc(request, 99);
  EXPECT_EQ(spec.workspace, 99U);
  EXPECT_EQ(spec.in[0], image_of_channels(8, DataType::bf16));
  EXPECT_EQ(spec.in[1], described({5, 3}, DataType::f32));
  EXPECT_EQ(spec.out[0], image_of_channels(8, DataType::f16));
}

TEST(InNhwc, RefusesAnOperandThatIsTooLargeOnEitherSide) {
  const TensorDesc large = described({max_elements + 1}, DataType::u8);
  EXPECT_NE(error_of([&] { in_nhwc({.in = {large}, .out = {}}); }), "");
  EXPECT_NE(error_of([&] { in_nhwc({.in = {}, .out = {large}}); }), "");
}

TEST(KeepPitch, KeepsGapsThatLeavePixelsAligned) {
  const auto kept = [](DataType type, std::int64_t pitch, Layout layout = Layout::nhwc) {
    TensorDesc request = image_of_channels(8, type, pitch), answer = image_of_channels(8, type);
    request.layout = layout;
    keep_pitch(answer, request);
    return answer.pitch;
  };
  EXPECT_EQ(kept(DataType::f32, 12), 12) << "48 bytes";
  EXPECT_EQ(kept(DataType::bf16, 24), 24) << "48 bytes";
  EXPECT_EQ(kept(DataType::bf16, 12), 0) << "24 bytes";
  EXPECT_EQ(kept(DataType::f32, 0), 0);
  EXPECT_EQ(kept(DataType::f32, 12, Layout::nchw), 0);
}

TEST(LikeParameters, LaysGradientsSlotsAndCopiesAsTheirParameters) {
  Update op({.rule = Rule::rmsprop, .copied = {1}}, 2);
  const TensorDesc first = image_of_channels(8, DataType::f32);
  TensorDesc second = described({2, 4, 1, 1}, DataType::f32);
  second.layout = Layout::packed;
  second.packing = std::make_shared<const Packing>(Packing{.backend = "own", .tag = "t"});
  Signature request{.in = std::vector<TensorDesc>(op.first_copy() + 1)};
  for (std::size_t i = op.first_parameter(); i < op.first_copy(); ++i) {
    request.in[i] =
        described((i - op.first_parameter()) % 2 == 0 ? first.shape : second.shape, DataType::f32);
  }
  request.in[op.first_parameter()] = first;
  request.in[op.first_parameter() + 1] = second;
  request.in[op.first_copy()] = described(second.shape, DataType::bf16);
  const KernelSpec spec = like_parameters(op, request);
  for (std::size_t i = op.first_parameter(); i < op.first_copy(); ++i) {
    EXPECT_EQ(spec.in[i], (i - op.first_parameter()) % 2 == 0 ? first : second) << i;
  }
  TensorDesc copy = second;
  copy.type = DataType::bf16;
  EXPECT_EQ(spec.in[op.first_copy()], copy);
  EXPECT_EQ(spec.in[0], request.in[0]) << "the learning rate";
}

}  // namespace
}  // namespace cnn::layers
