#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/models/structure.h"

namespace cnn::models {
namespace {

using testing::ElementsAre;
using tests::layers_of;
using tests::starting_with;

TEST(Densenet, GrowsByItsRateInEachLayer) {
  const auto joined = starting_with("concat", layers_of("cifar10", "densenet40_k12"));
  ASSERT_EQ(joined.size(), 36U);  // three blocks of twelve layers
  EXPECT_EQ(joined[0], "concat 28x32");
  EXPECT_EQ(joined[1], "concat 40x32");
  EXPECT_EQ(joined[11], "concat 160x32");  // 16 + 12 * 12
  EXPECT_EQ(joined[12], "concat 172x16");  // the transition keeps the channels
  EXPECT_EQ(joined[35], "concat 448x8");   // 16 + 36 * 12
}

TEST(Densenet, HalvesTheMapInTwoTransitions) {
  EXPECT_THAT(starting_with("average_pool", layers_of("cifar10", "densenet40_k12")),
              ElementsAre("average_pool 2x2/2 160x16", "average_pool 2x2/2 304x8"));
  EXPECT_THAT(starting_with("conv 1x1", layers_of("cifar10", "densenet100_k24")),
              ElementsAre("conv 1x1 784x32", "conv 1x1 1552x16"));
}

TEST(Densenet, HasThirtyTwoLayersPerBlockInItsDeeperForm) {
  const auto joined = starting_with("concat", layers_of("cifar10", "densenet100_k12"));
  ASSERT_EQ(joined.size(), 96U);
  EXPECT_EQ(joined.back(), "concat 1168x8");  // 16 + 96 * 12
}

}  // namespace
}  // namespace cnn::models
