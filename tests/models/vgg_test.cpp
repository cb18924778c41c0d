#include <algorithm>
#include <cstddef>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <string>
#include <vector>

#include "tests/models/structure.h"

namespace cnn::models {
namespace {

using testing::ElementsAre;
using tests::layers_of;

TEST(Vgg, HasElevenLayersWithWeightsInItsSmallestForm) {
  EXPECT_THAT(layers_of("imagenet", "vgg11"),
              ElementsAre("conv 3x3 64x224", "max_pool 2x2/2 64x112", "conv 3x3 128x112",
                          "max_pool 2x2/2 128x56", "conv 3x3 256x56", "conv 3x3 256x56",
                          "max_pool 2x2/2 256x28", "conv 3x3 512x28", "conv 3x3 512x28",
                          "max_pool 2x2/2 512x14", "conv 3x3 512x14", "conv 3x3 512x14",
                          "max_pool 2x2/2 512x7", "dense 4096", "dropout 4096", "dense 4096",
                          "dropout 4096"));
}

// Convolutions of each of the five groups, told apart by their maps.
TEST(Vgg, DeepensTheLastThreeGroupsWithItsNumber) {
  const auto groups = [](const char* name) {
    std::vector<std::ptrdiff_t> counts;
    const std::vector<std::string> lines = layers_of("imagenet", name);
    for (const char* const map : {"64x224", "128x112", "256x56", "512x28", "512x14"}) {
      counts.push_back(std::ranges::count(lines, std::string("conv 3x3 ") + map));
    }
    return counts;
  };
  EXPECT_THAT(groups("vgg16"), ElementsAre(2, 2, 3, 3, 3));
  EXPECT_THAT(groups("vgg19"), ElementsAre(2, 2, 4, 4, 4));
}

}  // namespace
}  // namespace cnn::models
