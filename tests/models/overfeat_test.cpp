#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/models/structure.h"

namespace cnn::models {
namespace {

using testing::ElementsAre;
using tests::layers_of;

TEST(Overfeat, HasTheLayersOfTheFastModel) {
  EXPECT_THAT(layers_of("imagenet", "overfeat"),
              ElementsAre("conv 11x11/4 96x56", "max_pool 2x2/2 96x28", "conv 5x5 256x24",
                          "max_pool 2x2/2 256x12", "conv 3x3 512x12", "conv 3x3 1024x12",
                          "conv 3x3 1024x12", "max_pool 2x2/2 1024x6", "dense 3072", "dropout 3072",
                          "dense 4096", "dropout 4096"));
}

}  // namespace
}  // namespace cnn::models
