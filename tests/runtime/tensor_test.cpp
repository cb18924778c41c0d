#include "runtime/tensor.h"

#include <cmath>
#include <gtest/gtest.h>
#include <limits>
#include <vector>

#include "runtime/error.h"

namespace cnn {
namespace {

TEST(Shape, CountsItsElements) {
  EXPECT_EQ(Shape({2, 3, 4, 5}).elements(), 120);
  EXPECT_EQ(Shape().elements(), 1) << "a scalar";
  EXPECT_EQ(Shape({7, 0}).elements(), 0);
}

TEST(Shape, IsEqualOnlyToTheSameDimensions) {
  EXPECT_EQ(Shape({2, 3}), Shape({2, 3}));
  EXPECT_NE(Shape({2, 3}), Shape({2, 3, 1}));
  EXPECT_NE(Shape({2, 3}), Shape({3, 2}));
}

TEST(Shape, RefusesSixDimensionsAndNegativeOnes) {
  EXPECT_THROW(Shape({1, 1, 1, 1, 1, 1}), Error);
  EXPECT_THROW(Shape({2, -1}), Error);
}

TEST(Shape, PrintsItself) {
  EXPECT_EQ(to_string(Shape({32, 64, 56, 56})), "[32, 64, 56, 56]");
  EXPECT_EQ(to_string(Shape()), "[]");
}

TEST(TensorDesc, CountsBytesByType) {
  const Shape shape{2, 3};
  EXPECT_EQ((TensorDesc{.shape = shape, .type = DataType::f32}).bytes(), 24U);
  EXPECT_EQ((TensorDesc{.shape = shape, .type = DataType::bf16}).bytes(), 12U);
  EXPECT_EQ((TensorDesc{.shape = shape, .type = DataType::f16}).bytes(), 12U);
  EXPECT_EQ((TensorDesc{.shape = shape, .type = DataType::i32}).bytes(), 24U);
  EXPECT_EQ((TensorDesc{.shape = shape, .type = DataType::u8}).bytes(), 6U);
}

TEST(TensorDesc, PadsChannelsToBlocksOfSixteen) {
  const TensorDesc desc{.shape = {2, 17, 3, 3}, .layout = Layout::nchw16c};
  EXPECT_EQ(desc.bytes(), 2U * 32 * 9 * 4);
}

TEST(TensorDesc, TakesTheBytesOfItsPacking) {
  TensorDesc desc{.shape = {4, 3, 1, 1}, .layout = Layout::packed};
  EXPECT_THROW(desc.bytes(), Error) << "no packing";
  desc.packing = std::make_shared<Packing>(Packing{.backend = "test", .tag = "a", .bytes = 100});
  EXPECT_EQ(desc.bytes(), 100U);
}

TEST(TensorDesc, ComparesPackingsByValue) {
  const auto desc = [](const char* tag) {
    TensorDesc result{.shape = {4}, .layout = Layout::packed};
    result.packing = std::make_shared<Packing>(Packing{.backend = "test", .tag = tag, .bytes = 64});
    return result;
  };
  EXPECT_EQ(desc("a"), desc("a"));
  EXPECT_NE(desc("a"), desc("b"));
  EXPECT_NE(desc("a"), (TensorDesc{.shape = {4}, .layout = Layout::packed}));
}

TEST(TensorDesc, PrintsTypeShapeAndLayout) {
  EXPECT_EQ(to_string(TensorDesc{.shape = {2, 3}, .type = DataType::bf16, .layout = Layout::nhwc}),
            "bf16[2, 3] nhwc");
}

TEST(Plain, MakesRealTypesF32AndKeepsIntegers) {
  const TensorDesc half{.shape = {5}, .type = DataType::f16, .layout = Layout::nhwc};
  EXPECT_EQ(plain(half), (TensorDesc{.shape = {5}}));
  const TensorDesc pixels{.shape = {5}, .type = DataType::u8, .layout = Layout::nhwc};
  EXPECT_EQ(plain(pixels), (TensorDesc{.shape = {5}, .type = DataType::u8}));
}

TEST(BFloat16, RoundsToNearestEven) {
  EXPECT_EQ(to_bf16(1.0F).bits, 0x3F80);
  EXPECT_EQ(to_bf16(1.00390625F).bits, 0x3F80) << "a tie rounds down to even";
  EXPECT_EQ(to_bf16(1.01171875F).bits, 0x3F82) << "a tie rounds up to even";
  EXPECT_EQ(to_float(to_bf16(-2.5F)), -2.5F);
}

TEST(BFloat16, KeepsInfinityAndNan) {
  EXPECT_TRUE(std::isinf(to_float(to_bf16(std::numeric_limits<float>::infinity()))));
  EXPECT_TRUE(std::isnan(to_float(to_bf16(std::numeric_limits<float>::quiet_NaN()))));
}

TEST(Float16, RoundsToNearestEven) {
  EXPECT_EQ(to_f16(1.0F).bits, 0x3C00);
  EXPECT_EQ(to_f16(-2.5F).bits, 0xC100);
  EXPECT_EQ(to_f16(1.00048828125F).bits, 0x3C00) << "a tie rounds down to even";
  EXPECT_EQ(to_f16(1.00146484375F).bits, 0x3C02) << "a tie rounds up to even";
  EXPECT_EQ(to_f16(1.9999F).bits, 0x4000) << "the mantissa overflows into the exponent";
}

TEST(Float16, BecomesInfinityAboveTheLargestNumber) {
  EXPECT_EQ(to_f16(65504.0F).bits, 0x7BFF);
  EXPECT_EQ(to_f16(65519.0F).bits, 0x7BFF);
  EXPECT_EQ(to_f16(65520.0F).bits, 0x7C00);
  EXPECT_EQ(to_f16(-1e30F).bits, 0xFC00);
  EXPECT_TRUE(std::isinf(to_float(to_f16(std::numeric_limits<float>::infinity()))));
  EXPECT_TRUE(std::isnan(to_float(to_f16(std::numeric_limits<float>::quiet_NaN()))));
}

TEST(Float16, KeepsSubnormalNumbers) {
  EXPECT_EQ(to_f16(0x1p-14F).bits, 0x0400) << "the smallest normal number";
  EXPECT_EQ(to_f16(0x1p-24F).bits, 0x0001) << "the smallest subnormal number";
  EXPECT_EQ(to_f16(0x1p-25F).bits, 0x0000) << "a tie rounds down to even";
  EXPECT_EQ(to_f16(0x1.8p-24F).bits, 0x0002) << "a tie rounds up to even";
  EXPECT_EQ(to_f16(0x1.FFFp-15F).bits, 0x0400) << "rounds up to a normal number";
  EXPECT_EQ(to_f16(-0.0F).bits, 0x8000);
}

TEST(Float16, ComesBackFromEveryBitPattern) {
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const Float16 value{static_cast<std::uint16_t>(bits)};
    const bool is_nan = (bits & 0x7FFFU) > 0x7C00;
    EXPECT_EQ(std::isnan(to_float(value)), is_nan) << bits;
    EXPECT_TRUE(is_nan || to_f16(to_float(value)).bits == bits) << bits;
  }
}

TEST(TensorView, GivesTypedElements) {
  std::vector<float> values{1, 2, 3};
  const TensorView view{.desc = {.shape = {3}},
                        .data = reinterpret_cast<std::byte*>(values.data())};
  EXPECT_EQ(view.as<float>().size(), 3U);
  EXPECT_EQ(view.as<float>()[2], 3);
}

}  // namespace
}  // namespace cnn
