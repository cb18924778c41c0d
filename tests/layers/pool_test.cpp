#include "layers/pool.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "layers/operands.h"
#include "runtime/error.h"
#include "tests/support/literals.h"

namespace cnn::layers {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;
using tests::floats;
using tests::nine;
using tests::run;
using tests::tensor;

// Returns the image 1 2 3 / 4 5 6 / 7 8 9.
TEST(Pool, TakesTheFirstMaximumAndNeverPadding) {
  const Window window{
      .kernel_h = 2, .kernel_w = 2, .stride_h = 2, .stride_w = 2, .pad_top = 1, .pad_left = 1};
  const auto x = tensor({1, 1, 3, 3}, {-1, -2, -2, -3, -7, -7, -5, -7, -7});
  const auto y = run(MaxPool(window, true), x);
  EXPECT_THAT(floats(y[0]), ElementsAre(-1, -2, -3, -7));
  EXPECT_THAT(y[1].view().as<std::uint8_t>(), ElementsAre(3, 2, 1, 0));
}

TEST(Pool, SendsTheGradientToTheMaximum) {
  const Window window{.kernel_h = 2, .kernel_w = 2};
  const auto dx =
      run(MaxPoolBackward(window, {1, 1, 3, 3}), tensor({1, 1, 2, 2}, {1, 10, 100, 1000}),
          tensor<std::uint8_t>({1, 1, 2, 2}, {3, 2, 1, 0}));
  EXPECT_THAT(floats(dx[0]), ElementsAre(0, 0, 0, 0, 1111, 0, 0, 0, 0));
}

TEST(Pool, AveragesOverThePixelsInsideTheImage) {
  const Window window{
      .kernel_h = 2, .kernel_w = 2, .stride_h = 2, .stride_w = 2, .pad_bottom = 1, .pad_right = 1};
  const auto y = run(AveragePool(window), nine());
  EXPECT_THAT(floats(y[0]), ElementsAre(3, 4.5, 7.5, 9));
  const auto dx =
      run(AveragePoolBackward(window, {1, 1, 3, 3}), tensor({1, 1, 2, 2}, {4, 2, 6, 5}));
  EXPECT_THAT(floats(dx[0]), ElementsAre(1, 1, 1, 1, 1, 1, 3, 3, 5));
}

TEST(Pool, AveragesWholeImages) {
  const auto y = run(SpatialMean(), tensor({1, 2, 1, 2}, {1, 2, 10, 30}));
  EXPECT_THAT(floats(y[0]), ElementsAre(1.5, 20));
}

TEST(Pool, KeepsIndicesOnlyWhereAGradientMayNeedThem) {
  for (const bool training : {false, true}) {
    Graph graph({.training = training});
    max_pool(graph.input("x", described({1, 3, 8, 8}, DataType::f32)), {});
    EXPECT_EQ(graph.nodes().back().outputs.size(), training ? 2 : 1);
  }
}

TEST(Pool, NamesTheLayerWhoseWindowDoesNotFit) {
  const auto pool_twice = [](Value (*pool)(Value, const PoolOptions&)) {
    Graph graph;
    const NameScope scope(graph, "block");
    const Value x = graph.input("x", described({1, 3, 4, 4}, DataType::f32));
    pool(pool(x, {}), {.kernel = 3});
  };
  EXPECT_THAT([&] { pool_twice(max_pool); },
              ThrowsMessage<Error>(HasSubstr("v/cg/block/max_pool1: a window of 3x3 does not fit "
                                             "an image of 2x2")));
  EXPECT_THAT([&] { pool_twice(average_pool); },
              ThrowsMessage<Error>(HasSubstr("v/cg/block/average_pool1: a window of 3x3 does")));
}

}  // namespace
}  // namespace cnn::layers
