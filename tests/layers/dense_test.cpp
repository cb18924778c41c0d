#include "layers/dense.h"

#include <cmath>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <string>

#include "layers/operands.h"
#include "runtime/error.h"
#include "tests/support/literals.h"

namespace cnn::layers {
namespace {

using testing::ElementsAre;
using testing::ElementsAreArray;
using testing::HasSubstr;
using testing::ThrowsMessage;
using tests::floats;
using tests::run;
using tests::tensor;

TEST(Dense, MultipliesRowsByColumns) {
  const auto x = tensor({2, 2}, {1, 2, 3, 4});
  const auto w = tensor({2, 3}, {1, 0, -1, 0, 1, -1});
  const auto y = run(Dense({.bias = true, .relu = true}), x, w, tensor({3}, {10, 20, 1}));
  EXPECT_THAT(floats(y[0]), ElementsAre(11, 22, 0, 13, 24, 0));
}

TEST(Dense, FlattensChannelsFastest) {
  const auto x = tensor({1, 2, 1, 3}, {1, 2, 3, 10, 20, 30});
  const auto y = run(Flatten(), x);
  EXPECT_THAT(floats(y[0]), ElementsAre(1, 10, 2, 20, 3, 30));
  EXPECT_THAT(floats(run(Unflatten({1, 2, 1, 3}), y[0])[0]), ElementsAreArray(floats(x)));
}

TEST(Dense, NamesAndStartsItsParametersAsTheOriginal) {
  Graph graph;
  Value y = graph.input("x", described({2, 50}, DataType::f32));
  y = dense(y, {.units = 8, .bias_value = 0.1});
  y = dense(y, {.units = 4, .relu = false});
  dense(y, {.units = 4, .stddev = 0.04});
  const auto info = [&](std::string_view name) {
    return graph.info(*graph.find("v/cg/" + std::string(name)));
  };
  EXPECT_EQ(info("affine0/weights").desc.shape, (Shape{50, 8}));
  EXPECT_EQ(info("affine0/weights").initializer.stddev, std::sqrt(2 / 50.0));
  EXPECT_EQ(info("affine0/biases").initializer.mean, 0.1);
  EXPECT_EQ(info("affine1/weights").initializer.stddev, std::sqrt(1 / 8.0));
  EXPECT_EQ(info("affine2/weights").initializer.stddev, 0.04);
}

TEST(Dense, RefusesImages) {
  EXPECT_THAT(([] {
                Graph graph;
                dense(graph.input("x", described({2, 3, 4, 4}, DataType::f32)), {.units = 1});
              }),
              ThrowsMessage<Error>(HasSubstr("v/cg/affine0 takes a matrix")));
}

}  // namespace
}  // namespace cnn::layers
