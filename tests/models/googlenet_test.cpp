#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <string>
#include <vector>

#include "tests/models/structure.h"

namespace cnn::models {
namespace {

using testing::ElementsAre;
using tests::first;
using tests::layers_of;
using tests::starting_with;

TEST(Googlenet, ReducesTheImageEightfoldBeforeItsModules) {
  EXPECT_THAT(first(5, layers_of("imagenet", "googlenet")),
              ElementsAre("conv 7x7/2 64x112", "max_pool 3x3/2 64x56", "conv 1x1 64x56",
                          "conv 3x3 192x56", "max_pool 3x3/2 192x28"));
}

// Table 1 of Szegedy et al., 2014: inception (3a) to (5b).
TEST(Googlenet, HasNineModulesOfTheWidthsOfThePaper) {
  EXPECT_THAT(starting_with("concat", layers_of("imagenet", "googlenet")),
              ElementsAre("concat 256x28", "concat 480x28", "concat 512x14", "concat 512x14",
                          "concat 512x14", "concat 528x14", "concat 832x14", "concat 832x7",
                          "concat 1024x7"));
}

TEST(Googlenet, HasFourBranchesInAModule) {
  const auto layers = layers_of("imagenet", "googlenet");
  const std::vector<std::string> module(layers.begin() + 5, layers.begin() + 13);
  EXPECT_THAT(module, ElementsAre("conv 1x1 64x28", "conv 1x1 96x28", "conv 3x3 128x28",
                                  "conv 1x1 16x28", "conv 5x5 32x28", "max_pool 3x3 192x28",
                                  "conv 1x1 32x28", "concat 256x28"));
}

}  // namespace
}  // namespace cnn::models
