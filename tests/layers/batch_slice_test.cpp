#include "layers/batch_slice.h"

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

TEST(SliceBatch, TakesExamplesOneAfterAnother) {
  const auto x = tensor({3, 2}, {1, 2, 3, 4, 5, 6});
  EXPECT_THAT(floats(run(SliceBatch(0, 1), x)[0]), ElementsAre(1, 2));
  EXPECT_THAT(floats(run(SliceBatch(1, 2), x)[0]), ElementsAre(3, 4, 5, 6));
}

TEST(SliceBatch, KeepsTheTypeOfPixelsAndLabels) {
  const auto labels = tensor<std::int32_t>({4}, {7, 8, 9, 10});
  EXPECT_THAT(run(SliceBatch(2, 2), labels)[0].view().as<std::int32_t>(), ElementsAre(9, 10));
  const auto pixels = tensor<std::uint8_t>({2, 1, 1, 2}, {1, 2, 3, 4});
  EXPECT_THAT(run(SliceBatch(1, 1), pixels)[0].view().as<std::uint8_t>(), ElementsAre(3, 4));
}

TEST(SliceBatch, RefusesWhatIsOutsideOfTheBatch) {
  Graph graph;
  const Value x = graph.input("x", described({4, 2}, DataType::f32));
  EXPECT_EQ(slice_batch(x, 3, 1).desc().shape, Shape({1, 2}));
  EXPECT_THROW(slice_batch(x, 3, 2), Error);
  EXPECT_THROW(slice_batch(x, -1, 2), Error);
  EXPECT_THROW(slice_batch(x, 0, 0), Error);
}

TEST(ConcatBatch, JoinsExamplesInOrder) {
  const auto a = tensor({1, 2}, {1, 2});
  const auto b = tensor({2, 2}, {3, 4, 5, 6});
  EXPECT_THAT(floats(run(ConcatBatch(), a, b)[0]), ElementsAre(1, 2, 3, 4, 5, 6));
}

TEST(ConcatBatch, RefusesPartsThatDifferInMoreThanTheirNumberOfExamples) {
  Graph graph;
  const Value a = graph.input("a", described({1, 2}, DataType::f32));
  const Value b = graph.input("b", described({1, 3}, DataType::f32));
  const Value c = graph.input("c", described({1, 2}, DataType::bf16));
  EXPECT_THROW(concat_batch(std::vector{a, b}), Error);
  EXPECT_THROW(concat_batch(std::vector{a, c}), Error);
}

TEST(ConcatBatch, HandsEachPartItsGradient) {
  Graph graph;
  const Value a = graph.input("a", described({1, 2}, DataType::f32));
  const Value b = graph.input("b", described({2, 2}, DataType::f32));
  const Value y = concat_batch(std::vector{a, scale(b, 10)});
  const auto gradient =
      gradients(y, std::vector{a, b}, graph.input("dy", described({3, 2}, DataType::f32)));
  tests::Interpreter values(graph);
  for (int i = 0; i < 6; ++i) {
    values.floats("dy")[static_cast<std::size_t>(i)] = static_cast<float>(i + 1);
  }
  values.run();
  EXPECT_THAT(values.floats(*gradient[0]), ElementsAre(1, 2));
  EXPECT_THAT(values.floats(*gradient[1]), ElementsAre(30, 40, 50, 60));
}

}  // namespace
}  // namespace cnn::layers
