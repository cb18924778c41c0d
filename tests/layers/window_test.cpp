#include "layers/window.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/error.h"

namespace cnn::layers {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::ThrowsMessage;

struct Row {
  std::int64_t kernel, stride, size;
  Padding padding;
  std::int64_t before, after, out;
};

Window square(std::int64_t kernel, std::int64_t stride) {
  return {.kernel_h = kernel, .kernel_w = kernel, .stride_h = stride, .stride_w = stride};
}

// The rows are the examples of TensorFlow's padding rule and layers of the networks.
TEST(Padded, FollowsTensorFlow) {
  constexpr Row rows[] = {
      {3, 2, 112, Padding::same, 0, 1, 56},
      {3, 2, 32, Padding::same, 0, 1, 16},
      {7, 2, 224, Padding::same, 2, 3, 112},
      {3, 1, 56, Padding::same, 1, 1, 56},
      {1, 2, 56, Padding::same, 0, 0, 28},
      {5, 1, 28, Padding::same, 2, 2, 28},
      {2, 1, 5, Padding::same, 0, 1, 5},
      {11, 4, 227, Padding::valid, 0, 0, 55},
      {3, 2, 147, Padding::valid, 0, 0, 73},
      {2, 2, 7, Padding::valid, 0, 0, 3},
      {7, 2, 224, Padding::same_resnet, 3, 3, 112},
      {3, 2, 56, Padding::same_resnet, 1, 1, 28},
      {3, 1, 56, Padding::same_resnet, 1, 1, 56},
      {1, 2, 56, Padding::same_resnet, 0, 0, 28},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(testing::Message() << row.kernel << "/" << row.stride << " on " << row.size);
    const Window w = padded(square(row.kernel, row.stride), row.padding, row.size, row.size, "x");
    EXPECT_EQ(w.pad_top, row.before);
    EXPECT_EQ(w.pad_left, row.before);
    EXPECT_EQ(w.pad_bottom, row.after);
    EXPECT_EQ(w.pad_right, row.after);
    EXPECT_EQ(w.output_h(row.size), row.out);
    EXPECT_EQ(w.output_w(row.size), row.out);
  }
}

TEST(Padded, TreatsHeightAndWidthApart) {
  const Window w = padded({.kernel_h = 1, .kernel_w = 7}, Padding::same, 9, 11, "x");
  EXPECT_EQ(w, (Window{.kernel_h = 1, .kernel_w = 7, .pad_left = 3, .pad_right = 3}));
}

TEST(Padded, NamesTheLayerThatDoesNotFit) {
  EXPECT_THAT([] { padded(square(7, 1), Padding::valid, 5, 9, "v/cg/conv3"); },
              ThrowsMessage<Error>(AllOf(HasSubstr("v/cg/conv3"), HasSubstr("7x7"),
                                         HasSubstr("5x9"), HasSubstr("--image_size"))));
}

}  // namespace
}  // namespace cnn::layers
