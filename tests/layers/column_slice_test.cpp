#include "layers/column_slice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "layers/operands.h"
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

}  // namespace
}  // namespace cnn::layers
