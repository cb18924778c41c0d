#include "layers/operands.h"

#include <gtest/gtest.h>
#include <vector>

#include "tests/support/error_of.h"
#include "tests/support/test_ops.h"

namespace cnn::layers {
namespace {

using tests::error_of;

TEST(Require, NamesTheOpTheReasonAndWhatWasGiven) {
  const tests::Scale op(2);
  const std::vector<TensorDesc> in{described({2, 3}, DataType::f32), described({}, DataType::i32)};
  EXPECT_EQ(error_of([&] { require(false, op, in, "takes images"); }),
            "scale: takes images, given f32[2, 3] nchw; i32[] nchw.");
  EXPECT_EQ(error_of([&] { require(true, op, in, "takes images"); }), "");
}

TEST(Require, CountsOperands) {
  const tests::Scale op(2);
  const std::vector<TensorDesc> in{described({2}, DataType::f32)};
  EXPECT_EQ(error_of([&] { require_count(op, in, 1); }), "");
  EXPECT_EQ(error_of([&] { require_count(op, in, 2); }),
            "scale: takes 2 operands, given f32[2] nchw.");
  EXPECT_NE(error_of([&] { require_count(op, {}, 1); }), "") << "no operand was given";
}

TEST(IsReal, IsFalseOfIntegersOnly) {
  for (const DataType type : {DataType::f32, DataType::f16, DataType::bf16}) {
    EXPECT_TRUE(is_real(type));
  }
  EXPECT_FALSE(is_real(DataType::i32));
  EXPECT_FALSE(is_real(DataType::u8));
}

TEST(Inside, FindsTheOutputsThatSeeAPixel) {
  struct Case {
    std::int64_t outputs, size, stride, offset, begin, end;
  };
  // An output's input position is output * stride + offset and must lie in [0, size).
  constexpr Case cases[] = {
      {5, 5, 1, 0, 0, 5},  {5, 5, 1, -1, 1, 5}, {5, 5, 1, 1, 0, 4},
      {3, 6, 2, -1, 1, 3}, {3, 6, 2, 1, 0, 3},  {4, 2, 2, -4, 2, 3},
  };
  for (const Case& c : cases) {
    const Range range = inside(c.outputs, c.size, c.stride, c.offset);
    EXPECT_EQ(range.begin, c.begin) << c.offset;
    EXPECT_EQ(range.end, c.end) << c.offset;
  }
  const Range none = inside(3, 2, 1, 5);
  EXPECT_GE(none.begin, none.end);
}

// Checks all small windows by the definition.
TEST(Inside, HasExactlyTheOutputsWhoseInputIsThere) {
  for (std::int64_t outputs = 0; outputs < 5; ++outputs) {
    for (std::int64_t size = 1; size < 5; ++size) {
      for (std::int64_t stride = 1; stride < 4; ++stride) {
        for (std::int64_t offset = -9; offset < 9; ++offset) {
          const Range range = inside(outputs, size, stride, offset);
          for (std::int64_t p = 0; p < outputs; ++p) {
            const std::int64_t input = p * stride + offset;
            EXPECT_EQ(range.begin <= p && p < range.end, 0 <= input && input < size)
                << outputs << ' ' << size << ' ' << stride << ' ' << offset << ' ' << p;
          }
          EXPECT_GE(range.begin, 0);
          EXPECT_LE(range.end, outputs);
        }
      }
    }
  }
}

}  // namespace
}  // namespace cnn::layers
