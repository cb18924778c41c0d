#include "layers/column_slice.h"

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

TEST(SliceColumns, TakesColumnsOfEveryRow) {
  const auto x = tensor({2, 3}, {1, 2, 3, 4, 5, 6});
  EXPECT_THAT(floats(run(SliceColumns(0, 1), x)[0]), ElementsAre(1, 4));
  EXPECT_THAT(floats(run(SliceColumns(1, 2), x)[0]), ElementsAre(2, 3, 5, 6));
}

TEST(SliceColumns, RefusesWhatIsOutsideOfTheMatrixOrNoMatrix) {
  Graph graph;
  const Value x = graph.input("x", described({2, 4}, DataType::f32));
  EXPECT_EQ(slice_columns(x, 3, 1).desc().shape, Shape({2, 1}));
  EXPECT_THROW(slice_columns(x, 3, 2), Error);
  EXPECT_THROW(slice_columns(x, -1, 2), Error);
  EXPECT_THROW(slice_columns(x, 0, 0), Error);
  EXPECT_THROW(slice_columns(graph.input("v", described({4}, DataType::f32)), 0, 1), Error);
}

TEST(ConcatColumns, PutsMatricesSideBySide) {
  const auto a = tensor({2, 1}, {1, 4});
  const auto b = tensor({2, 2}, {2, 3, 5, 6});
  EXPECT_THAT(floats(run(ConcatColumns(), a, b)[0]), ElementsAre(1, 2, 3, 4, 5, 6));
}

TEST(ConcatColumns, RefusesPartsThatDifferInMoreThanTheirNumberOfColumns) {
  Graph graph;
  const Value a = graph.input("a", described({2, 1}, DataType::f32));
  const Value b = graph.input("b", described({3, 1}, DataType::f32));
  const Value c = graph.input("c", described({2, 1}, DataType::bf16));
  EXPECT_THROW(concat_columns(std::vector{a, b}), Error);
  EXPECT_THROW(concat_columns(std::vector{a, c}), Error);
}

TEST(ConcatColumns, HandsEachPartItsGradient) {
  Graph graph;
  const Value a = graph.input("a", described({2, 1}, DataType::f32));
  const Value b = graph.input("b", described({2, 2}, DataType::f32));
  const Value y = concat_columns(std::vector{a, scale(b, 10)});
  const auto gradient =
      gradients(y, std::vector{a, b}, graph.input("dy", described({2, 3}, DataType::f32)));
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
