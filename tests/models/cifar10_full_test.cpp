#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/models/structure.h"

namespace cnn::models {
namespace {

using testing::ElementsAre;
using tests::layers_of;

TEST(Cifar10Full, HasTheLayersOfTheExampleOfCaffe) {
  EXPECT_THAT(layers_of("cifar10", "cifar10_full"),
              ElementsAre("conv 5x5 32x32", "max_pool 3x3/2 32x16", "lrn_within 32x16",
                          "conv 5x5 32x16", "average_pool 3x3/2 32x8", "lrn_within 32x8",
                          "conv 5x5 64x8", "average_pool 3x3/2 64x4"));
}

}  // namespace
}  // namespace cnn::models
