#include <gtest/gtest.h>
#include <memory>
#include <string>
#include <vector>

#include "layers/cpu/rows.h"
#include "layers/elementwise.h"
#include "runtime/error.h"
#include "tests/layers/cpu/run_op.h"
#include "tests/support/op_runner.h"

namespace cnn::layers::cpu {
namespace {

using test::random_values;
using test::Values;

KernelTable table_of_conversions() {
  KernelTable table;
  add_half_convert_rows(table);
  add_convert_rows(table);
  return table;
}

Values given(Shape shape, std::vector<float> data, DataType type = DataType::f32) {
  Values values;
  values.desc.shape = shape;
  values.desc.type = type;
  values.data = std::move(data);
  return values;
}

TensorDesc packed(Shape shape, DataType type, std::string tag, std::size_t bytes) {
  const auto packing = std::make_shared<const Packing>(Packing{"onednn", std::move(tag), bytes});
  return {.shape = shape, .type = type, .layout = Layout::packed, .packing = packing};
}

TEST(Convert, PutsChannelsIntoBlocksOfSixteenAndZeroesTheRest) {
  const Values x = given({1, 2, 1, 2}, {1, 2, 3, 4});
  const TensorDesc blocked{.shape = {1, 2, 1, 2}, .layout = Layout::nchw16c};
  const tests::HostTensor stored = test::pack(table_of_conversions(), x, blocked);
  const auto* value = reinterpret_cast<const float*>(stored.view().data);
  ASSERT_EQ(stored.desc().bytes(), 32 * sizeof(float));
  EXPECT_EQ(std::vector<float>(value, value + 4), (std::vector<float>{1, 3, 0, 0}));
  EXPECT_EQ(std::vector<float>(value + 16, value + 20), (std::vector<float>{2, 4, 0, 0}));
  EXPECT_EQ(value[15], 0);
  EXPECT_EQ(value[31], 0);
}

TEST(Convert, ReturnsEveryValueFromEveryLayoutAndType) {
  const KernelTable table = table_of_conversions();
  const Values x = random_values({2, 19, 3, 5}, DataType::bf16, 1);
  for (const DataType type : {DataType::f32, DataType::bf16, DataType::f16}) {
    for (const Layout layout : {Layout::nchw, Layout::nhwc, Layout::nchw16c}) {
      const TensorDesc desc{.shape = x.desc.shape, .type = type, .layout = layout};
      EXPECT_EQ(test::unpack(table, test::pack(table, x, desc)).data, x.data) << to_string(desc);
    }
  }
}

TEST(Convert, KeepsBytesAndIntegersWhenOnlyTheLayoutChanges) {
  const KernelTable table = table_of_conversions();
  for (const DataType type : {DataType::u8, DataType::i32}) {
    const Values x = given({1, 2, 1, 3}, {0, 1, 2, 253, 254, 255}, type);
    const TensorDesc desc{.shape = x.desc.shape, .type = type, .layout = Layout::nhwc};
    EXPECT_EQ(test::unpack(table, test::pack(table, x, desc)).data, x.data) << to_string(desc);
  }
}

TEST(Convert, RoundsToTheNearestBf16AndTiesToEven) {
  const KernelTable table = table_of_conversions();
  // The spacing of bf16 numbers at 1 is 1/128.
  const Values x = given({4}, {1 + 1.0F / 256, 1 + 3.0F / 256, 1 + 1.0F / 300, -2.5F});
  const TensorDesc desc{.shape = {4}, .type = DataType::bf16};
  EXPECT_EQ(test::unpack(table, test::pack(table, x, desc)).data,
            (std::vector<float>{1, 1 + 4.0F / 256, 1, -2.5F}));
}

TEST(Convert, TakesScalars) {
  const KernelTable table = table_of_conversions();
  const Values x = given({}, {1.5F});
  const TensorDesc desc{.shape = {}, .type = DataType::bf16};
  EXPECT_EQ(test::unpack(table, test::pack(table, x, desc)).data, x.data);
}

TEST(Convert, ReadsAndWritesPackedWeights) {
  const KernelTable table = table_of_conversions();
  const Values w = random_values({20, 3, 2, 2}, DataType::bf16, 2);
  const TensorDesc blocked =
      packed(w.desc.shape, DataType::f32, "same Acdb16a", sizeof(float) * 32 * 3 * 4);
  const tests::HostTensor stored = test::pack(table, w, blocked);
  // The layout is [o / 16][h][w][i][o % 16]; this is input channel 1 of filter 5 at (1, 0).
  const auto* value = reinterpret_cast<const float*>(stored.view().data);
  EXPECT_EQ(value[((1 * 2 + 0) * 3 + 1) * 16 + 5], w.data[(5 * 3 + 1) * 4 + 2]);
  EXPECT_EQ(test::unpack(table, stored).data, w.data);
}

TEST(Convert, ChangesBetweenTwoPackings) {
  const KernelTable table = table_of_conversions();
  const Values w = random_values({64, 32}, DataType::bf16, 2);  // the shape is [inputs, outputs]
  const TensorDesc from =
      packed(w.desc.shape, DataType::f32, "transposed AB16b16a", sizeof(float) * 64 * 32);
  const TensorDesc to =
      packed(w.desc.shape, DataType::bf16, "transposed AB8b16a2b", sizeof(BFloat16) * 64 * 32);
  const tests::HostTensor stored = test::pack(table, w, from);
  const tests::HostTensor other = tests::converted(table, stored.view(), to);
  EXPECT_EQ(test::unpack(table, other).data, w.data);
}

// Orders of weights in bf16 that oneDNN's kernels ask for.
struct PairsCase {
  std::string name;
  Shape shape;
  std::string from, to;              // packings
  std::int64_t stored_elements = 0;  // with padding; 0: none
};

std::vector<PairsCase> pairs_cases() {
  const Shape three{128, 64, 3, 3}, one{64, 96, 1, 1};
  const std::string plain = "same ABcd16b16a";
  return {
      {"forward_64", three, plain, "same AcdB16b64a2b"},
      {"forward_32", one, plain, "same AcdB16b32a2b"},
      {"forward_64_taps_last", one, plain, "same ABcd16b64a2b"},
      {"forward_64_pairs", {64, 32, 1, 1}, plain, "same AcdB64a2b"},
      {"forward_16", three, plain, "same ABcd8b16a2b"},
      {"backward_64", three, plain, "same BcdA16a64b2a"},
      {"backward_32", one, plain, "same BcdA16a32b2a"},
      {"backward_64_pairs", {32, 64, 2, 3}, plain, "same BcdA64b2a"},
      {"backward_16", three, plain, "same ABcd8a16b2a"},
      {"backward_16_inputs_first", three, plain, "same BAcd8a16b2a"},
      {"dense_64", {64, 128}, "transposed AB16b64a", "transposed AB16b64a2b"},
      {"dense_32", {96, 64}, "transposed AB16b32a", "transposed AB16b32a2b"},
      {"dense_16_pairs", {96, 64}, "transposed AB16b64a", "transposed AB8b64a2b"},
      {"dense_padded", {64, 41}, "transposed AB16b32a", "transposed AB16b32a2b", 4096},
  };
}

class PairsOfWeights : public testing::TestWithParam<PairsCase> {};

TEST_P(PairsOfWeights, AreTheWeightsRounded) {
  const PairsCase& pairs = GetParam();
  const KernelTable table = table_of_conversions();
  const Values w = random_values(pairs.shape, DataType::f32, 2);
  const std::int64_t elements =
      pairs.stored_elements > 0 ? pairs.stored_elements : pairs.shape.elements();
  const TensorDesc from = packed(pairs.shape, DataType::f32, pairs.from,
                                 static_cast<std::size_t>(elements) * sizeof(float));
  const TensorDesc to = packed(pairs.shape, DataType::bf16, pairs.to,
                               static_cast<std::size_t>(elements) * sizeof(BFloat16));
  if (effective_isa().avx512_bf16) {
    const auto spec = table.describe(Convert(DataType::bf16), {{from}, {to}});
    ASSERT_TRUE(spec);
    EXPECT_EQ(spec->by, Provider::own);
  }
  const tests::HostTensor stored = test::pack(table, w, from);
  const tests::HostTensor other = tests::converted(table, stored.view(), to);
  std::vector<float> expected;
  for (const float value : w.data) {
    expected.push_back(to_float(to_bf16(value)));
  }
  EXPECT_EQ(test::unpack(table, other).data, expected);
}

INSTANTIATE_TEST_SUITE_P(Orders, PairsOfWeights, testing::ValuesIn(pairs_cases()),
                         [](const auto& info) { return info.param.name; });

TEST(Convert, RefusesAPackingThatItCannotRead) {
  const KernelTable table = table_of_conversions();
  const TensorDesc from{.shape = {4, 4}};
  const TensorDesc to = packed({4, 4}, DataType::f32, "same nonsense", 64);
  EXPECT_THROW(table.describe(Convert(DataType::f32), {{from}, {to}}), Error);
}

}  // namespace
}  // namespace cnn::layers::cpu
