#include "runtime/checkpoint_layout.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <numeric>
#include <string>
#include <vector>

namespace cnn {
namespace {

using testing::ElementsAre;

TensorInfo saved(Shape shape, SavedAs as) {
  return {.name = "w", .desc = {.shape = shape}, .saved_as = as};
}

std::vector<float> counted(std::size_t count) {
  std::vector<float> values(count);
  std::iota(values.begin(), values.end(), 0.0F);
  return values;
}

// The values are w[o][i][h][w] = 6 o + 3 i + w.
TEST(CheckpointLayout, PutsTheWindowOfAKernelFirst) {
  const TensorInfo info = saved({2, 2, 1, 3}, SavedAs::hwio);
  EXPECT_EQ(checkpoint_shape(info), (Shape{1, 3, 2, 2}));
  std::vector<float> values(12);
  to_checkpoint_layout(info, counted(12), values);
  EXPECT_THAT(values, ElementsAre(0, 6, 3, 9, 1, 7, 4, 10, 2, 8, 5, 11));
}

// The values are w[c][1][h][w] of a depthwise convolution.
TEST(CheckpointLayout, KeepsTheChannelsOfADepthwiseKernelBeforeItsOne) {
  const TensorInfo info = saved({2, 1, 1, 3}, SavedAs::hwoi);
  EXPECT_EQ(checkpoint_shape(info), (Shape{1, 3, 2, 1}));
  std::vector<float> values(6);
  to_checkpoint_layout(info, counted(6), values);
  EXPECT_THAT(values, ElementsAre(0, 3, 1, 4, 2, 5));
}

TEST(CheckpointLayout, LeavesOtherTensorsAsTheyAre) {
  const TensorInfo info = saved({3}, SavedAs::same);
  EXPECT_EQ(checkpoint_shape(info), (Shape{3}));
  std::vector<float> values(3);
  to_checkpoint_layout(info, counted(3), values);
  EXPECT_EQ(values, counted(3));
}

TEST(CheckpointLayout, IsUndoneByReading) {
  for (const SavedAs as : {SavedAs::same, SavedAs::hwio, SavedAs::hwoi}) {
    const TensorInfo info = saved({2, 3, 4, 5}, as);
    std::vector<float> stored(120);
    std::vector<float> read(120);
    to_checkpoint_layout(info, counted(120), stored);
    from_checkpoint_layout(info, stored, read);
    EXPECT_EQ(read, counted(120));
  }
}

}  // namespace
}  // namespace cnn
