#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/models/structure.h"

namespace cnn::models {
namespace {

using testing::ElementsAre;
using tests::layers_of;

// Krizhevsky, 2014: one column without groups, and without local response normalisation.
TEST(Alexnet, HasFiveConvolutionsAndTwoHiddenLayers) {
  EXPECT_THAT(layers_of("imagenet", "alexnet"),
              ElementsAre("conv 11x11/4 64x55", "max_pool 3x3/2 64x27", "conv 5x5 192x27",
                          "max_pool 3x3/2 192x13", "conv 3x3 384x13", "conv 3x3 384x13",
                          "conv 3x3 256x13", "max_pool 3x3/2 256x6", "dense 4096", "dropout 4096",
                          "dense 4096", "dropout 4096"));
}

TEST(AlexnetForCifar10, NormalisesAfterTheFirstPoolAndBeforeTheSecond) {
  EXPECT_THAT(layers_of("cifar10", "alexnet"),
              ElementsAre("conv 5x5 64x32", "max_pool 3x3/2 64x16", "lrn 64x16", "conv 5x5 64x16",
                          "lrn 64x16", "max_pool 3x3/2 64x8", "dense 384", "dense 192"));
}

}  // namespace
}  // namespace cnn::models
