#include "layers/relu_mask.h"

#include <algorithm>
#include <cstdint>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <limits>

#include "tests/support/host_tensor.h"

namespace cnn::layers {
namespace {

using testing::ElementsAre;

TEST(ReluMask, HasAByteForEightChannelsOfAPixel) {
  EXPECT_EQ(relu_mask_of({2, 16, 5, 3}).shape, (Shape{2, 2, 5, 3}));
  EXPECT_EQ(relu_mask_of({2, 17, 5, 3}).shape, (Shape{2, 3, 5, 3}));
  EXPECT_EQ(relu_mask_of({2, 17, 5, 3}).type, DataType::u8);
}

// The image has two pixels of nine channels, so channel 8 begins the second byte.
TEST(ReluMask, SetsABitWhereTheImageIsAboveZeroOrNaN) {
  const Shape shape{1, 9, 1, 2};
  tests::HostTensor image(TensorDesc{.shape = shape});
  const auto values = image.view().as<float>();
  std::ranges::fill(values, 0.0F);
  values[0] = 0.5F;                                     // pixel 0, channel 0
  values[6] = 1e-30F;                                   // channel 3
  values[16] = 2;                                       // channel 8
  values[1] = -1;                                       // pixel 1, channel 0
  values[15] = 3;                                       // channel 7
  values[9] = std::numeric_limits<float>::quiet_NaN();  // channel 4
  tests::HostTensor mask(relu_mask_of(shape));
  set_relu_mask(image.view(), mask.view());
  EXPECT_THAT(mask.view().as<std::uint8_t>(), ElementsAre(0b1001, 0b10010000, 1, 0));
  for (std::size_t i = 0; i < 18; ++i) {
    EXPECT_EQ(is_gate_open(mask.view(), shape, i), !(values[i] <= 0)) << i;
  }
}

// The mask of the second image begins with a byte of its own.
TEST(ReluMask, KeepsImagesApart) {
  const Shape shape{2, 3, 1, 1};
  tests::HostTensor image(TensorDesc{.shape = shape});
  std::ranges::fill(image.view().as<float>(), 0.0F);
  image.view().as<float>()[2] = 1;  // image 0, channel 2
  image.view().as<float>()[4] = 1;  // image 1, channel 1
  tests::HostTensor mask(relu_mask_of(shape));
  set_relu_mask(image.view(), mask.view());
  EXPECT_THAT(mask.view().as<std::uint8_t>(), ElementsAre(0b100, 0b10));
}

}  // namespace
}  // namespace cnn::layers
