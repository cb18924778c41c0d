#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <utility>

#include "tests/models/structure.h"

namespace cnn::models {
namespace {

using testing::ElementsAre;
using tests::first;
using tests::layers_of;
using tests::starting_with;

// Basic blocks of two convolutions in 18 and 34 layers, bottlenecks of three in the deeper ones.
TEST(OfficialResnet, HasTwoConvolutionsInABlockOfItsShallowForms) {
  EXPECT_THAT(first(7, layers_of("imagenet", "official_resnet18")),
              ElementsAre("conv 7x7/2 64x112", "max_pool 3x3/2 64x56", "conv 1x1 64x56",
                          "conv 3x3 64x56", "conv 3x3 64x56", "add 64x56", "conv 3x3 64x56"));
  EXPECT_THAT(first(7, layers_of("imagenet", "official_resnet50")),
              ElementsAre("conv 7x7/2 64x112", "max_pool 3x3/2 64x56", "conv 1x1 256x56",
                          "conv 1x1 64x56", "conv 3x3 64x56", "conv 1x1 256x56", "add 256x56"));
}

TEST(OfficialResnet, StridesInTheConvolutionOfThreeByThree) {
  for (const char* const name : {"official_resnet50", "official_resnet50_v2"}) {
    EXPECT_THAT(starting_with("conv 3x3/2", layers_of("imagenet", name)),
                ElementsAre("conv 3x3/2 128x28", "conv 3x3/2 256x14", "conv 3x3/2 512x7"));
  }
}

TEST(OfficialResnet, HasTheBlocksOfItsDepth) {
  for (const auto& [name, blocks] :
       {std::pair{"official_resnet18", 8U}, std::pair{"official_resnet34_v2", 16U},
        std::pair{"official_resnet101", 33U}, std::pair{"official_resnet152_v2", 50U},
        std::pair{"official_resnet200", 66U}}) {
    EXPECT_EQ(starting_with("add", layers_of("imagenet", name)).size(), blocks) << name;
  }
}

TEST(OfficialResnet, AppendsItsLastLayerItself) {
  EXPECT_EQ(layers_of("imagenet", "official_resnet18_v2").back(), "dense 1001");
}

}  // namespace
}  // namespace cnn::models
