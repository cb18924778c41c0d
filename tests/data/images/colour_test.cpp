#include "data/images/colour.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <vector>

namespace cnn::data {
namespace {

// Draws the same numbers in the same order as distort_colours().
struct ColourDraws {
  double brightness, saturation, hue, contrast;

  explicit ColourDraws(RandomStream random)
      : brightness(random.uniform(-32.0F / 255, 32.0F / 255)),
        saturation(random.uniform(0.5F, 1.5F)),
        hue(random.uniform(-0.2F, 0.2F)),
        contrast(random.uniform(0.5F, 1.5F)) {}
};

using ColourPixels = std::vector<std::array<double, 3>>;

void reference_contrast(ColourPixels& pixels, double factor) {
  for (std::size_t c = 0; c < 3; ++c) {
    double mean = 0;
    for (const auto& pixel : pixels) {
      mean += pixel[c] / static_cast<double>(pixels.size());
    }
    for (auto& pixel : pixels) {
      pixel[c] = mean + (pixel[c] - mean) * factor;
    }
  }
}

// Textbook HSV on a hexagonal cone, where a change of hue moves along six edges.
void reference_hsv(ColourPixels& pixels, double saturation, double turn) {
  for (auto& [r, g, b] : pixels) {
    const double value = std::max({r, g, b}), chroma = value - std::min({r, g, b});
    double edge = 0;
    if (chroma > 0) {
      edge = value == r   ? (g - b) / chroma
             : value == g ? 2 + (b - r) / chroma
                          : 4 + (r - g) / chroma;
    }
    const double kept = value > 0 ? std::clamp(chroma / value * saturation, 0.0, 1.0) * value : 0;
    edge = std::fmod(edge + 6 * turn + 12, 6);
    const double middle = kept * (1 - std::abs(std::fmod(edge, 2) - 1)), least = value - kept;
    const std::array<std::array<double, 3>, 6> sides{{{kept, middle, 0},
                                                      {middle, kept, 0},
                                                      {0, kept, middle},
                                                      {0, middle, kept},
                                                      {middle, 0, kept},
                                                      {kept, 0, middle}}};
    const auto& side = sides.at(static_cast<std::size_t>(edge) % 6);
    r = side[0] + least;
    g = side[1] + least;
    b = side[2] + least;
  }
}

ColourPixels reference_hsv_distortion(ColourPixels pixels, bool at_odd_place,
                                      const ColourDraws& draws) {
  for (auto& pixel : pixels) {
    for (double& value : pixel) {
      value += draws.brightness;
    }
  }
  if (at_odd_place) {
    reference_contrast(pixels, draws.contrast);
  }
  reference_hsv(pixels, draws.saturation, draws.hue);
  if (!at_odd_place) {
    reference_contrast(pixels, draws.contrast);
  }
  for (auto& pixel : pixels) {
    for (double& value : pixel) {
      value = std::clamp(value, 0.0, 1.0);
    }
  }
  return pixels;
}

TEST(Colours, AreThoseOfTheTextbookInHsv) {
  const ColourPixels image{{0.9, 0.5, 0.3}, {0.3, 0.8, 0.5}, {0.4, 0.3, 0.7}, {0.6, 0.6, 0.6},
                           {0.8, 0.3, 0.7}, {0.3, 0.7, 0.8}, {0.7, 0.7, 0.2}};
  for (int position = 0; position < 40; ++position) {
    const bool at_odd_place = position % 2 != 0;
    std::vector<float> pixels;
    for (const auto& pixel : image) {
      pixels.insert(pixels.end(), pixel.begin(), pixel.end());
    }
    RandomStream random(5, position);
    const ColourPixels expected =
        reference_hsv_distortion(image, at_odd_place, ColourDraws(random));
    distort_colours(pixels, ColourSpace::hsv, at_odd_place, random);
    for (std::size_t i = 0; i < pixels.size(); ++i) {
      EXPECT_NEAR(pixels[i], expected[i / 3][i % 3], 1e-5) << position << ' ' << i;
    }
  }
}

// In YIQ, saturation and hue preserve luma. Only brightness shifts the mean luma, as long as no
// value is clipped.
TEST(Colours, KeepTheMeanLumaInYiq) {
  const auto luma = [](const std::vector<float>& pixels) {
    double sum = 0;
    for (std::size_t i = 0; i < pixels.size(); i += 3) {
      sum += 0.299 * pixels[i] + 0.587 * pixels[i + 1] + 0.114 * pixels[i + 2];
    }
    return 3 * sum / static_cast<double>(pixels.size());
  };
  for (int position = 0; position < 40; ++position) {
    std::vector<float> pixels{0.5F, 0.45F, 0.4F, 0.55F, 0.6F, 0.45F, 0.5F, 0.4F, 0.55F};
    RandomStream random(5, position);
    const double expected = luma(pixels) + ColourDraws(random).brightness;
    distort_colours(pixels, ColourSpace::yiq, position % 2 != 0, random);
    EXPECT_NEAR(luma(pixels), expected, 2e-3) << position;
  }
}

// The angle stays below half a turn, because a full turn would hide direction and size.
TEST(Colours, TurnAHueInYiqByPartOfHalfATurn) {
  for (int position = 0; position < 40; ++position) {
    std::vector<float> pixels{0.6F, 0.5F, 0.4F};
    const auto angle = [&] {
      const double i = 0.596 * pixels[0] - 0.274 * pixels[1] - 0.322 * pixels[2];
      const double q = 0.211 * pixels[0] - 0.523 * pixels[1] + 0.312 * pixels[2];
      return std::atan2(q, i);
    };
    const double before = angle();
    RandomStream random(5, position);
    const double hue = ColourDraws(random).hue;
    distort_colours(pixels, ColourSpace::yiq, false, random);
    EXPECT_NEAR(angle() - before, hue * 3.14159265, 0.01) << position;
  }
}

TEST(Colours, ChangeButStayInRangeAndAreReproducible) {
  for (const ColourSpace space : {ColourSpace::yiq, ColourSpace::hsv}) {
    for (int position = 0; position < 50; ++position) {
      std::vector<float> pixels, again;
      for (int i = 0; i < 300; ++i) {
        pixels.push_back(static_cast<float>(i % 97) / 97);
      }
      again = pixels;
      const std::vector<float> before = pixels;
      RandomStream random(2, position), same(2, position);
      distort_colours(pixels, space, position % 2 != 0, random);
      distort_colours(again, space, position % 2 != 0, same);
      EXPECT_EQ(pixels, again);
      EXPECT_NE(pixels, before);
      EXPECT_THAT(pixels, testing::Each(testing::AllOf(testing::Ge(0), testing::Le(1))));
    }
  }
}

TEST(Colours, LeaveGreyGrey) {
  for (const ColourSpace space : {ColourSpace::yiq, ColourSpace::hsv}) {
    for (int position = 0; position < 20; ++position) {
      std::vector<float> pixels(30);
      for (std::size_t i = 0; i < pixels.size(); ++i) {
        const std::size_t pixel = i / 3;
        pixels[i] = static_cast<float>(pixel) / 10;
      }
      RandomStream random(2, position);
      distort_colours(pixels, space, position % 2 != 0, random);
      for (std::size_t i = 0; i < pixels.size(); i += 3) {
        EXPECT_NEAR(pixels[i], pixels[i + 1], 2e-3);
        EXPECT_NEAR(pixels[i], pixels[i + 2], 2e-3);
      }
    }
  }
}

}  // namespace
}  // namespace cnn::data
