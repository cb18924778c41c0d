#include "layers/subsample.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "layers/operands.h"
#include "runtime/error.h"
#include "tests/support/literals.h"

namespace cnn::layers {
namespace {

using testing::ElementsAre;
using tests::floats;
using tests::nine;
using tests::run;
using tests::tensor;

Window every_second(std::int64_t offset) {
  return {.stride_h = 2,
          .stride_w = 2,
          .pad_top = -offset,
          .pad_bottom = offset,
          .pad_left = -offset,
          .pad_right = offset};
}

// Returns the image 1 2 3 / 4 5 6 / 7 8 9.
TEST(Subsample, KeepsOnePixelOfEachStride) {
  EXPECT_THAT(floats(run(Subsample(every_second(0)), nine())[0]), ElementsAre(1, 3, 7, 9));
}

TEST(Subsample, HasZerosWhereAnOffsetLeadsPastTheImage) {
  EXPECT_THAT(floats(run(Subsample(every_second(1)), nine())[0]), ElementsAre(5, 0, 0, 0));
}

TEST(Subsample, HandsTheGradientToThePixelsItKeeps) {
  const auto dy = tensor({1, 1, 2, 2}, {1, 2, 3, 4});
  EXPECT_THAT(floats(run(SubsampleBackward(every_second(0), {1, 1, 3, 3}), dy)[0]),
              ElementsAre(1, 0, 2, 0, 0, 0, 3, 0, 4));
  EXPECT_THAT(floats(run(SubsampleBackward(every_second(1), {1, 1, 3, 3}), dy)[0]),
              ElementsAre(0, 0, 0, 0, 1, 0, 0, 0, 0));
}

TEST(Subsample, RefusesAnOffsetOfAStride) {
  Graph graph;
  const Value x = graph.input("x", described({1, 2, 4, 4}, DataType::f32));
  EXPECT_THROW(subsample(x, 2, 2), Error);
  EXPECT_EQ(subsample(x, 2, 1).desc().shape, Shape({1, 2, 2, 2}));
}

}  // namespace
}  // namespace cnn::layers
