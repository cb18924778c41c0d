#include "data/imagenet/preprocess.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <string>
#include <vector>

#include "runtime/error.h"
#include "tests/data/files.h"
#include "tests/data/images/encode.h"

namespace cnn::data {
namespace {

constexpr int small_side = 16;

struct PreprocessCase {
  std::string file;
  ImageOptions options{.side = small_side, .seed = 3};
  bool training = true;
  std::vector<Box> boxes = {};

  std::vector<float> at(const Place& place) const {
    PreprocessScratch scratch;
    return at(place, scratch);
  }
  std::vector<float> at(const Place& place, PreprocessScratch& scratch) const {
    std::vector<float> out(std::size_t{3} * small_side * small_side);
    preprocess({.file = std::as_bytes(std::span(file)), .boxes = boxes, .place = place}, options,
               training, scratch, out);
    return out;
  }
};

PreprocessCase gradient_case(bool training = true) {
  return {.file = jpeg_of(80, 60, JpegKind::subsampled, gradient), .training = training};
}

float mean_of_columns(const std::vector<float>& image, int first, int columns) {
  float sum = 0;
  for (int row = 0; row < small_side; ++row) {
    for (int column = first; column < first + columns; ++column) {
      sum += image[std::size_t{3} * static_cast<std::size_t>(row * small_side + column)];
    }
  }
  return sum / static_cast<float>(small_side * columns);
}

// The image is dark on the left and bright on the right, so its brighter half shows whether it was
// mirrored.
TEST(Preprocess, MirrorsAboutHalfOfTheTrainingImages) {
  const PreprocessCase one{
      .file = png_of(40, 40, [](int, int column, int) { return std::uint8_t(6 * column); })};
  int mirrored = 0;
  for (int position = 0; position < 200; ++position) {
    const std::vector<float> image = one.at({.position = position});
    mirrored += mean_of_columns(image, 0, 8) > mean_of_columns(image, 8, 8) ? 1 : 0;
  }
  EXPECT_GT(mirrored, 70);
  EXPECT_LT(mirrored, 130);
}

TEST(Preprocess, DrawsNothingInEvaluation) {
  PreprocessCase one = gradient_case(false);
  one.options.distortions = true;
  const std::vector<float> image = one.at({.position = 1});
  EXPECT_EQ(one.at({.position = 2, .in_batch = 1}), image);
  one.options.seed = 99;
  EXPECT_EQ(one.at({.position = 3}), image);
  one.options.distortions = false;
  EXPECT_EQ(one.at({.position = 3}), image);
}

TEST(Preprocess, DoesNotDependOnWhatItsBuffersHeld) {
  const PreprocessCase large = gradient_case();
  PreprocessCase small{.file = png_of(9, 30, gradient)};
  for (const bool fused : {true, false}) {
    small.options.decode_crop_only = fused;
    PreprocessScratch scratch;
    large.at({.position = 4}, scratch);
    EXPECT_EQ(small.at({.position = 5}, scratch), small.at({.position = 5})) << fused;
  }
}

// Colours change from pixel to pixel, so interpolated pixels depend on their neighbours.
std::uint8_t many_colours(int row, int column, int channel) {
  return static_cast<std::uint8_t>(channel == 0   ? 9 * row
                                   : channel == 1 ? 7 * column
                                                  : 5 * (row + column));
}

// The decoder decodes a margin around the crop, which must give the same values as the whole image.
TEST(Preprocess, EvaluatesTheSamePixelsByDecodingOnlyTheCrop) {
  for (const auto& [height, width] :
       {std::pair{80, 60}, {61, 199}, {133, 171}, {33, 17}, {16, 16}, {8, 5}}) {
    for (const JpegKind kind : {JpegKind::subsampled, JpegKind::colour, JpegKind::progressive}) {
      for (int method = 0; method < 4; ++method) {
        PreprocessCase one{.file = jpeg_of(height, width, kind, many_colours), .training = false};
        one.options.resize = static_cast<ResizeChoice>(method);
        const std::vector<float> crop_only = one.at({});
        one.options.decode_crop_only = false;
        EXPECT_EQ(one.at({}), crop_only) << height << 'x' << width << ' ' << method;
      }
    }
  }
}

TEST(Preprocess, CropsAroundABoxUnlessMlPerfAsksForNone) {
  PreprocessCase plain = gradient_case(), boxed = gradient_case();
  boxed.boxes = {{0.7F, 0.7F, 0.8F, 0.8F}};
  const auto differing = [&] {
    int count = 0;
    for (int position = 0; position < 20; ++position) {
      count += plain.at({.position = position}) != boxed.at({.position = position}) ? 1 : 0;
    }
    return count;
  };
  EXPECT_GT(differing(), 0);
  plain.options.ml_perf = boxed.options.ml_perf = true;
  EXPECT_EQ(differing(), 0);
}

TEST(Preprocess, SubtractsChannelMeansForOfficialModelsDistortedOrNot) {
  PreprocessCase white{.file = png_of(300, 300, [](int, int, int) { return std::uint8_t{255}; }),
                       .training = false};
  white.options.preprocessor = Preprocessor::official_models;
  const std::vector<float> evaluated = white.at({});
  EXPECT_NEAR(evaluated[0], 255 - 123.68, 1e-3);
  EXPECT_NEAR(evaluated[2], 255 - 103.94, 1e-3);
  white.training = white.options.distortions = true;
  const std::vector<float> trained = white.at({});
  for (std::size_t c = 0; c < 3; ++c) {
    EXPECT_LE(trained[c], evaluated[c] + 1e-3) << "the clamp of distorted colours ends at white";
    EXPECT_GE(trained[c], evaluated[c] - 33) << "brightness subtracts at most this";
  }
}

TEST(Preprocess, KeepsDistortedColoursInTheRange) {
  PreprocessCase one = gradient_case();
  one.options.distortions = true;
  for (const bool yiq : {false, true}) {
    one.options.colours_in_yiq = yiq;
    for (int position = 0; position < 20; ++position) {
      const std::vector<float> image = one.at({.position = position, .in_batch = position});
      EXPECT_GE(*std::ranges::min_element(image), -1);
      EXPECT_LE(*std::ranges::max_element(image), 1);
    }
  }
}

TEST(Preprocess, TakesImagesOfOnePixel) {
  const PreprocessCase dot{.file = png_of(1, 1, [](int, int, int) { return std::uint8_t{255}; })};
  for (const bool training : {true, false}) {
    PreprocessCase one = dot;
    one.training = training;
    for (const float value : one.at({})) {
      EXPECT_NEAR(value, 1, 1e-5);
    }
  }
}

TEST(Preprocess, ThrowsErrorForWhatIsNoImage) {
  const PreprocessCase text{.file = "no image"};
  EXPECT_THROW(text.at({}), Error);
  EXPECT_THROW((PreprocessCase{.file = ""}.at({})), Error);
}

}  // namespace
}  // namespace cnn::data
