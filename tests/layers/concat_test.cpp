#include "layers/concat.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/literals.h"

namespace cnn::layers {
namespace {

using testing::ElementsAre;
using tests::floats;
using tests::run;
using tests::tensor;

TEST(Concat, StacksChannelsOfEachImage) {
  const auto a = tensor({2, 1, 1, 1}, {1, 2});
  const auto b = tensor({2, 2, 1, 1}, {3, 4, 5, 6});
  const auto y = run(Concat(), a, b);
  EXPECT_THAT(floats(y[0]), ElementsAre(1, 3, 4, 2, 5, 6));
  const auto parts = run(Split({1, 2}), y[0]);
  EXPECT_THAT(floats(parts[0]), ElementsAre(1, 2));
  EXPECT_THAT(floats(parts[1]), ElementsAre(3, 4, 5, 6));
}

TEST(Concat, PadsAndSlicesChannels) {
  const auto x = tensor({2, 1, 1, 1}, {7, 8});
  const auto y = run(PadChannels(1, 2), x);
  EXPECT_THAT(floats(y[0]), ElementsAre(0, 7, 0, 0, 0, 8, 0, 0));
  EXPECT_THAT(floats(run(SliceChannels(1, 2), y[0])[0]), ElementsAre(7, 0, 8, 0));
}

}  // namespace
}  // namespace cnn::layers
