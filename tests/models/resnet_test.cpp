#include <algorithm>
#include <cstddef>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <string>
#include <utility>
#include <vector>

#include "tests/models/structure.h"

namespace cnn::models {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::Not;
using tests::first;
using tests::layers_of;
using tests::starting_with;

TEST(Resnet, BeginsWithAWideConvolutionAndAPool) {
  EXPECT_THAT(first(2, layers_of("imagenet", "resnet50")),
              ElementsAre("conv 7x7/2 64x112", "max_pool 3x3/2 64x56"));
}

// The projection of the shortcut comes first, then 1x1, 3x3 and 1x1.
TEST(Resnet, StridesInTheFirstConvolutionOfABottleneckAndInV15InTheSecond) {
  EXPECT_THAT(starting_with("conv 1x1/2 128", layers_of("imagenet", "resnet50")),
              ElementsAre("conv 1x1/2 128x28"));
  EXPECT_THAT(layers_of("imagenet", "resnet50"), Not(Contains("conv 3x3/2 128x28")));
  EXPECT_THAT(layers_of("imagenet", "resnet50_v1.5"), Contains("conv 3x3/2 128x28"));
  EXPECT_THAT(layers_of("imagenet", "resnet50_v1.5"), Not(Contains("conv 1x1/2 128x28")));
}

TEST(Resnet, HasTheBlocksOfThePaperInEachStage) {
  const auto blocks = [](const char* name) {
    std::vector<std::ptrdiff_t> counts;
    const std::vector<std::string> lines = layers_of("imagenet", name);
    for (const char* const map : {"256x56", "512x28", "1024x14", "2048x7"}) {
      counts.push_back(std::ranges::count(lines, std::string("add ") + map));
    }
    return counts;
  };
  for (const char* const version : {"", "_v2"}) {
    const std::string suffix(version);
    EXPECT_THAT(blocks(("resnet50" + suffix).c_str()), ElementsAre(3, 4, 6, 3));
    EXPECT_THAT(blocks(("resnet101" + suffix).c_str()), ElementsAre(3, 4, 23, 3));
    EXPECT_THAT(blocks(("resnet152" + suffix).c_str()), ElementsAre(3, 8, 36, 3));
  }
}

TEST(ResnetForCifar10, HasSixLayersPerBlockOfAStageAndTwo) {
  for (const auto& [name, depth] :
       {std::pair{"resnet20", 20U}, std::pair{"resnet32_v2", 32U}, std::pair{"resnet110", 110U}}) {
    // The last layer is not among the convolutions.
    EXPECT_EQ(starting_with("conv 3x3", layers_of("cifar10", name)).size(), depth - 1) << name;
    EXPECT_EQ(starting_with("add", layers_of("cifar10", name)).size(), (depth - 2) / 2) << name;
  }
}

// Shortcuts to wider stages drop every other pixel and add channels of zeros, without weights.
TEST(ResnetForCifar10, WidensShortcutsWithoutWeights) {
  const auto layers = layers_of("cifar10", "resnet20");
  EXPECT_THAT(starting_with("pad_channels", layers),
              ElementsAre("pad_channels 32x16", "pad_channels 64x8"));
  EXPECT_THAT(starting_with("average_pool", layers),
              ElementsAre("average_pool 1x1/2 16x16", "average_pool 1x1/2 32x8"));
  EXPECT_TRUE(starting_with("conv 1x1", layers).empty());
}

}  // namespace
}  // namespace cnn::models
