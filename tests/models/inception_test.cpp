#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/models/structure.h"

namespace cnn::models {
namespace {

using testing::ElementsAre;
using tests::first;
using tests::layers_of;
using tests::starting_with;

TEST(Inception3, BeginsWithFiveConvolutionsAndTwoPools) {
  EXPECT_THAT(
      first(7, layers_of("imagenet", "inception3")),
      ElementsAre("conv 3x3/2 32x149", "conv 3x3 32x147", "conv 3x3 64x147", "max_pool 3x3/2 64x73",
                  "conv 1x1 80x73", "conv 3x3 192x71", "max_pool 3x3/2 192x35"));
}

TEST(Inception3, HasElevenModulesOnThreeMaps) {
  EXPECT_THAT(starting_with("concat", layers_of("imagenet", "inception3")),
              ElementsAre("concat 256x35", "concat 288x35", "concat 288x35", "concat 768x17",
                          "concat 768x17", "concat 768x17", "concat 768x17", "concat 768x17",
                          "concat 1280x8", "concat 2048x8", "concat 2048x8"));
}

TEST(Inception3, TakesTheMaximumInTheLastModuleOnly) {
  EXPECT_THAT(starting_with("max_pool 3x3 ", layers_of("imagenet", "inception3")),
              ElementsAre("max_pool 3x3 2048x8"));
}

TEST(Inception4, JoinsThreeTimesInItsStem) {
  const auto joined = starting_with("concat", layers_of("imagenet", "inception4"));
  EXPECT_THAT(first(3, joined), ElementsAre("concat 160x73", "concat 192x71", "concat 384x35"));
}

TEST(Inception4, RepeatsItsModulesFourSevenAndThreeTimes) {
  const auto joined = starting_with("concat", layers_of("imagenet", "inception4"));
  ASSERT_EQ(joined.size(), 3U + 4 + 1 + 7 + 1 + 3);
  EXPECT_EQ(joined[3], "concat 384x35");
  EXPECT_EQ(joined[7], "concat 1024x17");
  EXPECT_EQ(joined[15], "concat 1536x8");
  EXPECT_EQ(joined.back(), "concat 1536x8");
}

}  // namespace
}  // namespace cnn::models
