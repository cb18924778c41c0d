#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/models/structure.h"

namespace cnn::models {
namespace {

using testing::ElementsAre;
using tests::first;
using tests::layers_of;
using tests::starting_with;

TEST(Mobilenet, WidensSixfoldBeforeEachDepthwiseConvolutionButTheFirst) {
  EXPECT_THAT(first(6, layers_of("imagenet", "mobilenet")),
              ElementsAre("conv 3x3/2 32x112", "depthwise 3x3 32x112", "conv 1x1 16x112",
                          "conv 1x1 96x112", "depthwise 3x3/2 96x56", "conv 1x1 24x56"));
}

// Table 2 of Sandler et al., 2018: seventeen blocks.
TEST(Mobilenet, HasTheDepthwiseConvolutionsOfThePaper) {
  EXPECT_THAT(starting_with("depthwise", layers_of("imagenet", "mobilenet")),
              ElementsAre("depthwise 3x3 32x112", "depthwise 3x3/2 96x56", "depthwise 3x3 144x56",
                          "depthwise 3x3/2 144x28", "depthwise 3x3 192x28", "depthwise 3x3 192x28",
                          "depthwise 3x3/2 192x14", "depthwise 3x3 384x14", "depthwise 3x3 384x14",
                          "depthwise 3x3 384x14", "depthwise 3x3 384x14", "depthwise 3x3 576x14",
                          "depthwise 3x3 576x14", "depthwise 3x3/2 576x7", "depthwise 3x3 960x7",
                          "depthwise 3x3 960x7", "depthwise 3x3 960x7"));
}

// A block adds its input where the stride is 1 and the widths match: all but the first of a stage.
TEST(Mobilenet, AddsTheInputOfTenBlocks) {
  EXPECT_EQ(starting_with("add", layers_of("imagenet", "mobilenet")).size(), 10U);
}

TEST(Mobilenet, EndsInAClassifierOfItsOwn) {
  const auto layers = layers_of("imagenet", "mobilenet");
  EXPECT_EQ(layers.back(), "conv 1x1 1001x1");
  EXPECT_EQ(layers[layers.size() - 2], "dropout 1280x1");
}

}  // namespace
}  // namespace cnn::models
