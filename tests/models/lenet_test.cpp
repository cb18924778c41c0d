#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/models/structure.h"

namespace cnn::models {
namespace {

using testing::ElementsAre;
using tests::layers_of;

TEST(Lenet, HasTwoConvolutionsAndOneHiddenLayer) {
  EXPECT_THAT(layers_of("imagenet", "lenet"),
              ElementsAre("conv 5x5 32x28", "max_pool 2x2/2 32x14", "conv 5x5 64x14",
                          "max_pool 2x2/2 64x7", "dense 512"));
}

TEST(Lenet, IsTheSameNetworkOnMnist) {
  EXPECT_EQ(layers_of("mnist", "lenet"), layers_of("imagenet", "lenet"));
}

}  // namespace
}  // namespace cnn::models
