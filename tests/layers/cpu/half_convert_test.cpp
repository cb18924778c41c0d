#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <gtest/gtest.h>
#include <limits>
#include <optional>
#include <vector>

#include "layers/cpu/rows.h"
#include "layers/elementwise.h"
#include "tests/support/op_runner.h"

namespace cnn::tests {
namespace {

using layers::Convert;

KernelTable half_converts() {
  KernelTable table;
  layers::cpu::add_half_convert_rows(table);
  return table;
}

std::optional<KernelSpec> spec_of(const TensorDesc& from, const TensorDesc& to) {
  return half_converts().describe(Convert(to.type), {.in = {from}, .out = {to}});
}

// The values as f32, f16 and back.
std::vector<float> by_way_of_f16(const std::vector<float>& values) {
  const auto count = static_cast<std::int64_t>(values.size());
  const TensorDesc wide{.shape = {count}}, narrow{.shape = {count}, .type = DataType::f16};
  HostTensor in(wide), half(narrow), out(wide);
  std::copy(values.begin(), values.end(), in.view().as<float>().begin());
  ImmediateStream stream;
  const KernelTable table = half_converts();
  table.make(Convert(DataType::f16), {.in = {wide}, .out = {narrow}})
      ->run(stream, {.in = {in.view()}, .out = {half.view()}, .workspace = {}});
  table.make(Convert(DataType::f32), {.in = {narrow}, .out = {wide}})
      ->run(stream, {.in = {half.view()}, .out = {out.view()}, .workspace = {}});
  const auto result = out.view().as<float>();
  return {result.begin(), result.end()};
}

// f16 keeps ten digits after the leading one; a value in the middle goes to the even neighbour.
TEST(HalfConvert, RoundsToTheNearestAndTiesToEven) {
  EXPECT_EQ(by_way_of_f16({1, -0.5F, 1 + 0x1p-10F, 1 + 0x1p-11F, 1 + 0x3p-11F, 2049, 2051}),
            (std::vector<float>{1, -0.5F, 1 + 0x1p-10F, 1, 1 + 0x1p-9F, 2048, 2052}));
}

TEST(HalfConvert, OverflowsToInfinityAndUnderflowsThroughSubnormals) {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(by_way_of_f16({65504, 65520, -1e6F, 0x1p-24F, 0x1p-26F, infinity}),
            (std::vector<float>{65504, infinity, -infinity, 0x1p-24F, 0, infinity}));
}

TEST(HalfConvert, KeepsNan) {
  EXPECT_TRUE(std::isnan(by_way_of_f16({std::numeric_limits<float>::quiet_NaN()}).front()));
}

TEST(HalfConvert, FillsThePaddingOfABlockedImageWithZeros) {
  const TensorDesc from{.shape = {1, 3, 1, 2}, .layout = Layout::nchw};
  const TensorDesc to{.shape = {1, 3, 1, 2}, .type = DataType::f16, .layout = Layout::nchw16c};
  HostTensor in(from), out(to);
  const std::vector<float> values{1, 2, 3, 4, 5, 6};  // two pixels of each of three channels
  std::copy(values.begin(), values.end(), in.view().as<float>().begin());
  ImmediateStream stream;
  half_converts()
      .make(Convert(DataType::f16), {.in = {from}, .out = {to}})
      ->run(stream, {.in = {in.view()}, .out = {out.view()}, .workspace = {}});
  const auto stored = out.view().as<Float16>();
  ASSERT_EQ(stored.size(), 32U);
  for (std::size_t pixel = 0; pixel < 2; ++pixel) {
    for (std::size_t channel = 0; channel < 16; ++channel) {
      const float expected = channel < 3 ? values[2 * channel + pixel] : 0;
      EXPECT_EQ(to_float(stored[16 * pixel + channel]), expected) << channel << " of " << pixel;
    }
  }
}

TEST(HalfConvert, LeavesOtherTypesAndPackedWeightsToOthers) {
  const TensorDesc f32{.shape = {2, 8, 3, 3}};
  TensorDesc f16 = f32, bf16 = f32, packed = f32;
  f16.type = DataType::f16;
  bf16.type = DataType::bf16;
  packed.layout = Layout::packed;
  EXPECT_TRUE(spec_of(f32, f16));
  EXPECT_TRUE(spec_of(f16, bf16));
  EXPECT_FALSE(spec_of(f32, bf16));
  EXPECT_FALSE(spec_of(f32, f32));
  EXPECT_FALSE(spec_of(packed, f16));
}

}  // namespace
}  // namespace cnn::tests
