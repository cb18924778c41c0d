#include "data/images/crop.h"

#include <cmath>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <limits>
#include <set>

#include "tests/data/files.h"

namespace cnn::data {
namespace {

using testing::HasSubstr;

TEST(SampleCrop, KeepsAspectAreaAndTheImagesEdges) {
  const ImageSize image{375, 500};
  std::set<int> tops, heights;
  for (int position = 0; position < 2000; ++position) {
    RandomStream random(1, position);
    const Region crop = sample_crop(image, {}, random);
    ASSERT_GE(crop.top, 0);
    ASSERT_GE(crop.left, 0);
    ASSERT_LE(crop.top + crop.height, image.height);
    ASSERT_LE(crop.left + crop.width, image.width);
    const double aspect = static_cast<double>(crop.width) / crop.height;
    const double area = static_cast<double>(crop.width) * crop.height / (375.0 * 500);
    EXPECT_TRUE(aspect > 0.73 && aspect < 1.36) << aspect;
    EXPECT_GE(area, 0.0999) << "a tenth of the image, which is the only box";
    tops.insert(crop.top);
    heights.insert(crop.height);
  }
  EXPECT_GT(tops.size(), 200U);
  EXPECT_GT(heights.size(), 150U);
}

TEST(SampleCrop, CoversPartOfABox) {
  const std::vector<Box> boxes{{0.0F, 0.0F, 0.2F, 0.2F}};
  for (int position = 0; position < 500; ++position) {
    RandomStream random(1, position);
    const Region crop = sample_crop({400, 400}, boxes, random);
    const double covered = std::max(0, 80 - crop.top) * std::max(0.0, 80.0 - crop.left);
    EXPECT_GE(covered, 0.1 * 80 * 80);
  }
}

TEST(SampleCrop, TakesTheWholeImageWhereNothingFits) {
  RandomStream random(1, 1);
  const Region strip = sample_crop({3, 4000}, {}, random);
  EXPECT_EQ(strip, (Region{0, 0, 3, 4000}));
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const std::vector<Box> nonsense{{nan, nan, nan, nan}, {5, 5, -5, -5}, {0.9F, 0.9F, 0.1F, 0.1F}};
  EXPECT_EQ(sample_crop({100, 100}, nonsense, random), (Region{0, 0, 100, 100}));
  EXPECT_EQ(sample_crop({1, 1}, {}, random), (Region{0, 0, 1, 1}));
}

TEST(SampleCrop, IsAFunctionOfSeedAndPosition) {
  const auto crop = [](std::uint64_t seed, std::int64_t position) {
    RandomStream random(seed, position);
    return sample_crop({375, 500}, {}, random);
  };
  EXPECT_EQ(crop(5, 6), crop(5, 6));
  EXPECT_NE(crop(5, 6), crop(5, 7));
  EXPECT_NE(crop(5, 6), crop(4, 6));
}

TEST(CentralCrop, HasTheOriginalsSizes) {
  const CentralCrop crop = central_crop({375, 500}, {224, 224});
  EXPECT_EQ(crop.resized, (ImageSize{256, 341}));
  EXPECT_EQ(crop.top, 16);
  EXPECT_EQ(crop.left, 58);
  EXPECT_EQ(official_central_crop({375, 500}, {224, 224}).resized, (ImageSize{256, 341}));
  const CentralCrop strip = central_crop({1, 65535}, {224, 224});
  EXPECT_EQ(strip.resized.height, 256);
  EXPECT_THAT(error_of([] {
                official_central_crop({375, 500}, {299, 299});
              }),
              HasSubstr("--input_preprocessor=default"));
}

}  // namespace
}  // namespace cnn::data
