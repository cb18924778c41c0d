#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/models/structure.h"

namespace cnn::models {
namespace {

using testing::ElementsAre;
using tests::layers_of;

TEST(Trivial, SqueezesEveryImageIntoOneUnit) {
  for (const char* const data_set : {"imagenet", "cifar10", "mnist"}) {
    EXPECT_THAT(layers_of(data_set, "trivial"), ElementsAre("dense 1", "dense 4096")) << data_set;
  }
}

}  // namespace
}  // namespace cnn::models
