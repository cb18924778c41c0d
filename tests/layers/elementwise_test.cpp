#include "layers/elementwise.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/literals.h"

namespace cnn::layers {
namespace {

using testing::ElementsAre;
using testing::FloatNear;
using testing::Pointwise;
using tests::floats;
using tests::run;
using tests::tensor;

TEST(Elementwise, AddsScalesAndFills) {
  const auto a = tensor({2}, {1, -2});
  EXPECT_THAT(floats(run(Add(), a, a, a)[0]), ElementsAre(3, -6));
  EXPECT_THAT(floats(run(Add(true), a, a)[0]), ElementsAre(2, 0));
  EXPECT_THAT(floats(run(Scale(-0.5), a)[0]), ElementsAre(-0.5, 1));
  EXPECT_THAT(floats(run(Fill({3}, 7))[0]), ElementsAre(7, 7, 7));
}

TEST(Elementwise, NormalisesBytes) {
  const auto y = run(Normalise(1 / 127.5F, -1, DataType::f32),
                     tensor<std::uint8_t>({1, 1, 1, 3}, {0, 255, 51}));
  EXPECT_THAT(floats(y[0]), Pointwise(FloatNear(1e-6F), {-1.0F, 1.0F, -0.6F}));
}

}  // namespace
}  // namespace cnn::layers
