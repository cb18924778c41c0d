#include "data/augment.h"

#include <array>
#include <gtest/gtest.h>
#include <map>
#include <set>
#include <tuple>
#include <vector>

namespace cnn::data {
namespace {

constexpr ImageFormat format{32, 32, 3, DataType::u8};
using Image = std::vector<std::byte>;

// Pixel (y, x) has the value (y + 1, x + 1, 7), which is never zero, so padding is visible.
Image coordinates() {
  Image image(format.bytes());
  for (std::size_t pixel = 0; pixel < 1024; ++pixel) {
    image[3 * pixel] = static_cast<std::byte>(pixel / 32 + 1);
    image[3 * pixel + 1] = static_cast<std::byte>(pixel % 32 + 1);
    image[3 * pixel + 2] = std::byte{7};
  }
  return image;
}

Image transformed(const Transform& transform, std::int64_t position) {
  Image result(format.bytes(), std::byte{99});
  transform(coordinates(), result, position);
  return result;
}

std::array<int, 3> pixel(const Image& image, int y, int x) {
  const auto at = static_cast<std::size_t>(3 * (32 * y + x));
  return {static_cast<int>(image[at]), static_cast<int>(image[at + 1]),
          static_cast<int>(image[at + 2])};
}

TEST(CropAndFlip, MovesMirrorsAndPadsWithoutOtherChanges) {
  const Transform transform = crop_and_flip(format, 4, 1);
  for (std::int64_t position = 0; position < 200; ++position) {
    const Image image = transformed(transform, position);
    // The middle pixel is never padding, so it reveals the random draws.
    const auto middle = pixel(image, 16, 16);
    const auto right = pixel(image, 16, 17);
    const bool mirrored = right[1] < middle[1];
    const int down = middle[0] - 17;
    const int shift = middle[1] - 1 - (mirrored ? 15 : 16);
    ASSERT_TRUE(down >= -4 && down <= 4 && shift >= -4 && shift <= 4);
    for (int y = 0; y < 32; ++y) {
      for (int x = 0; x < 32; ++x) {
        const int row = y + down;
        const int column = (mirrored ? 31 - x : x) + shift;
        const bool inside = row >= 0 && row < 32 && column >= 0 && column < 32;
        const std::array<int, 3> expected =
            inside ? std::array{row + 1, column + 1, 7} : std::array{0, 0, 0};
        ASSERT_EQ(pixel(image, y, x), expected) << y << " " << x;
      }
    }
  }
}

TEST(CropAndFlip, DrawsEveryOffsetAndFlipsHalfOfTheImages) {
  const Transform transform = crop_and_flip(format, 4, 1);
  std::set<std::tuple<int, int>> offsets;
  int mirrored = 0;
  for (std::int64_t position = 0; position < 1000; ++position) {
    const Image image = transformed(transform, position);
    const auto middle = pixel(image, 16, 16);
    const bool flip = pixel(image, 16, 17)[1] < middle[1];
    mirrored += flip ? 1 : 0;
    offsets.emplace(middle[0] - 17, middle[1] - 1 - (flip ? 15 : 16));
  }
  EXPECT_EQ(offsets.size(), 81U);
  EXPECT_NEAR(mirrored, 500, 70);
}

TEST(CropAndFlip, DependsOnSeedAndPositionOnly) {
  EXPECT_EQ(transformed(crop_and_flip(format, 4, 1), 5),
            transformed(crop_and_flip(format, 4, 1), 5));
  int same = 0;
  for (std::int64_t position = 0; position < 100; ++position) {
    same += transformed(crop_and_flip(format, 4, 1), position) ==
                    transformed(crop_and_flip(format, 4, 2), position)
                ? 1
                : 0;
  }
  EXPECT_LT(same, 10);
}

TEST(CropAndFlip, MovesWholeFloats) {
  constexpr ImageFormat small{2, 2, 1, DataType::f32};
  const std::array<float, 4> image{1, 2, 3, 4};
  std::array<float, 4> result{};
  std::map<float, int> corners;
  for (std::int64_t position = 0; position < 100; ++position) {
    crop_and_flip(small, 0, 3)(std::as_bytes(std::span(image)),
                               std::as_writable_bytes(std::span(result)), position);
    ++corners[result[0]];
    EXPECT_EQ(result[0] + result[1], 3.0F);
  }
  EXPECT_EQ(corners.size(), 2U);  // one result is mirrored, the other is not
}

}  // namespace
}  // namespace cnn::data
