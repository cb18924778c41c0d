#include "layers/activation.h"

#include <cmath>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <limits>

#include "tests/support/literals.h"

namespace cnn::layers {
namespace {

using testing::ElementsAre;
using tests::floats;
using tests::run;
using tests::tensor;

constexpr float nan = std::numeric_limits<float>::quiet_NaN();

TEST(Activation, ClampsAndKeepsNan) {
  const auto y = run(Relu(6), tensor({5}, {-1, 0, 3, 7, nan}));
  EXPECT_THAT(floats(y[0]).first(4), ElementsAre(0, 0, 3, 6));
  EXPECT_TRUE(std::isnan(floats(y[0])[4]));
  const auto dx = run(ReluBackward(6), tensor({4}, {1, 2, 3, 4}), tensor({4}, {0, 0, 3, 6}));
  EXPECT_THAT(floats(dx[0]), ElementsAre(0, 0, 3, 0));
}

}  // namespace
}  // namespace cnn::layers
