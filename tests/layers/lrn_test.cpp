#include "layers/lrn.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/literals.h"

namespace cnn::layers {
namespace {

using testing::FloatNear;
using testing::Pointwise;
using tests::floats;
using tests::run;
using tests::tensor;

TEST(Lrn, DividesByTheNeighboursSquares) {
  const auto x = tensor({1, 3, 1, 1}, {1, 2, 3});
  const auto y = run(Lrn({.radius = 1, .bias = 1, .alpha = 1, .beta = 1}), x);
  EXPECT_THAT(floats(y[0]), Pointwise(FloatNear(1e-6F), {1 / 6.0F, 2 / 15.0F, 3 / 14.0F}));
}

TEST(Lrn, WithinAChannelDividesByThePixelsAround) {
  const auto x = tensor({1, 2, 2, 2}, {1, 2, 3, 4, 0, 0, 0, 5});
  const auto y = run(WithinLrn({.radius = 1, .bias = 1, .alpha = 1, .beta = 1}), x);
  const float first = 31, second = 26;  // within each channel, all four pixels are neighbours
  EXPECT_THAT(floats(y[0]), Pointwise(FloatNear(1e-6F), {1 / first, 2 / first, 3 / first, 4 / first,
                                                         0.0F, 0.0F, 0.0F, 5 / second}));
}

TEST(Lrn, WithinAChannelReachesAsFarAsItsRadius) {
  const auto x = tensor({1, 1, 1, 4}, {1, 2, 3, 4});
  const auto y = run(WithinLrn({.radius = 1, .bias = 1, .alpha = 1, .beta = 1}), x);
  EXPECT_THAT(floats(y[0]),
              Pointwise(FloatNear(1e-6F), {1 / 6.0F, 2 / 15.0F, 3 / 30.0F, 4 / 26.0F}));
}

}  // namespace
}  // namespace cnn::layers
