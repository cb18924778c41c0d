#include "layers/row_slice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "layers/elementwise.h"
#include "layers/operands.h"
#include "layers/passes/autodiff.h"
#include "runtime/error.h"
#include "tests/support/interpreter.h"
#include "tests/support/literals.h"

namespace cnn::layers {
namespace {

using testing::ElementsAre;
using tests::floats;
using tests::run;
using tests::tensor;

// Two channels of three rows of two pixels.
auto two_channels() { return tensor({1, 2, 3, 2}, {1, 2, 3, 4, 5, 6, 10, 20, 30, 40, 50, 60}); }

TEST(SliceRows, TakesRowsOfEveryChannel) {
  EXPECT_THAT(floats(run(SliceRows(0, 1), two_channels())[0]), ElementsAre(1, 2, 10, 20));
  EXPECT_THAT(floats(run(SliceRows(1, 2), two_channels())[0]),
              ElementsAre(3, 4, 5, 6, 30, 40, 50, 60));
}

TEST(SliceRows, KeepsTheTypeOfPixels) {
  const auto pixels = tensor<std::uint8_t>({2, 1, 2, 2}, {1, 2, 3, 4, 5, 6, 7, 8});
  EXPECT_THAT(run(SliceRows(1, 1), pixels)[0].view().as<std::uint8_t>(), ElementsAre(3, 4, 7, 8));
}

TEST(SliceRows, RefusesRowsOutsideOfTheImage) {
  Graph graph;
  const Value x = graph.input("x", described({1, 2, 5, 3}, DataType::f32));
  EXPECT_EQ(slice_rows(x, 3, 2).desc().shape, Shape({1, 2, 2, 3}));
  EXPECT_THROW(slice_rows(x, 3, 3), Error);
  EXPECT_THROW(slice_rows(x, -1, 2), Error);
  EXPECT_THROW(slice_rows(x, 0, 0), Error);
  EXPECT_THROW(slice_rows(graph.input("matrix", described({4, 5}, DataType::f32)), 0, 1), Error);
}

TEST(SliceRows, HandsItsGradientToItsRowsAndZeroToTheOthers) {
  const auto dy = tensor({1, 2, 1, 2}, {7, 8, 70, 80});
  EXPECT_THAT(floats(run(SliceRowsBackward(1, 3), dy)[0]),
              ElementsAre(0, 0, 7, 8, 0, 0, 0, 0, 70, 80, 0, 0));
}

TEST(ConcatRows, PutsImagesBelowEachOther) {
  const auto below = tensor({1, 2, 1, 2}, {7, 8, 70, 80});
  EXPECT_THAT(floats(run(ConcatRows(), two_channels(), below)[0]),
              ElementsAre(1, 2, 3, 4, 5, 6, 7, 8, 10, 20, 30, 40, 50, 60, 70, 80));
}

TEST(ConcatRows, RefusesPartsThatDifferInMoreThanTheirNumberOfRows) {
  Graph graph;
  const Value a = graph.input("a", described({1, 2, 1, 3}, DataType::f32));
  const Value b = graph.input("b", described({1, 2, 2, 4}, DataType::f32));
  const Value c = graph.input("c", described({1, 2, 1, 3}, DataType::bf16));
  EXPECT_THROW(concat_rows(std::vector{a, b}), Error);
  EXPECT_THROW(concat_rows(std::vector{a, c}), Error);
}

TEST(ConcatRows, HandsEachPartItsGradient) {
  Graph graph;
  const Value a = graph.input("a", described({1, 2, 1, 1}, DataType::f32));
  const Value b = graph.input("b", described({1, 2, 2, 1}, DataType::f32));
  const Value y = concat_rows(std::vector{a, scale(b, 10)});
  const auto gradient =
      gradients(y, std::vector{a, b}, graph.input("dy", described({1, 2, 3, 1}, DataType::f32)));
  tests::Interpreter values(graph);
  for (int i = 0; i < 6; ++i) {
    values.floats("dy")[static_cast<std::size_t>(i)] = static_cast<float>(i + 1);
  }
  values.run();
  EXPECT_THAT(values.floats(*gradient[0]), ElementsAre(1, 4));
  EXPECT_THAT(values.floats(*gradient[1]), ElementsAre(20, 30, 50, 60));
}

}  // namespace
}  // namespace cnn::layers
