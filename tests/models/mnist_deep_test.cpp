#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/models/structure.h"

namespace cnn::models {
namespace {

using testing::ElementsAre;
using tests::layers_of;

TEST(MnistDeep, HasTheLayersOfTheTutorial) {
  EXPECT_THAT(layers_of("mnist", "mnist_deep"),
              ElementsAre("conv 5x5 32x28", "max_pool 2x2/2 32x14", "conv 5x5 64x14",
                          "max_pool 2x2/2 64x7", "dense 1024", "dropout 1024"));
}

TEST(MnistDeep, StartsAllBiasesAtATenth) {
  const Model& model = find("mnist", "mnist_deep");
  Graph graph;
  logits(model, graph.input("images", {.shape = {1, 1, 28, 28}}));
  int biases = 0;
  for (const TensorInfo& info : graph.tensors()) {
    if (info.role == Role::parameter && info.desc.shape.rank() == 1) {
      ++biases;
      EXPECT_DOUBLE_EQ(info.initializer.mean, 0.1) << info.name;
    }
  }
  EXPECT_EQ(biases, 4);
}

}  // namespace
}  // namespace cnn::models
