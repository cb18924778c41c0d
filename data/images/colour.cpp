#include "data/images/colour.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

namespace cnn::data {
namespace {

constexpr float max_brightness = 32.0F / 255;
constexpr float min_factor = 0.5F, max_factor = 1.5F;  // of saturation and contrast
constexpr float max_hue = 0.2F;                        // of a turn; in YIQ of half a turn

using Matrix = std::array<std::array<float, 3>, 3>;

constexpr Matrix rgb_to_yiq{
    {{0.299F, 0.587F, 0.114F}, {0.596F, -0.274F, -0.322F}, {0.211F, -0.523F, 0.312F}}};
constexpr Matrix yiq_to_rgb{
    {{1, 0.95617069F, 0.62143257F}, {1, -0.2726886F, -0.64681324F}, {1, -1.103744F, 1.70062309F}}};

Matrix product(const Matrix& a, const Matrix& b) {
  Matrix result{};
  for (std::size_t i = 0; i < 3; ++i) {
    for (std::size_t j = 0; j < 3; ++j) {
      for (std::size_t k = 0; k < 3; ++k) {
        result[i][j] += a[i][k] * b[k][j];
      }
    }
  }
  return result;
}

void change_brightness(std::span<float> pixels, float delta) {
  for (float& value : pixels) {
    value += delta;
  }
}

// Scales the distance of every value from the mean of its channel.
void change_contrast(std::span<float> pixels, float factor) {
  std::array<double, 3> sum{};
  for (std::size_t i = 0; i < pixels.size(); i += 3) {
    for (std::size_t c = 0; c < 3; ++c) {
      sum[c] += pixels[i + c];
    }
  }
  const double count = static_cast<double>(pixels.size()) / 3;
  for (std::size_t i = 0; i < pixels.size(); ++i) {
    const auto mean = static_cast<float>(sum[i % 3] / count);
    pixels[i] = (pixels[i] - mean) * factor + mean;
  }
}

void multiply(std::span<float> pixels, const Matrix& matrix) {
  for (std::size_t i = 0; i < pixels.size(); i += 3) {
    const std::array<float, 3> rgb{pixels[i], pixels[i + 1], pixels[i + 2]};
    for (std::size_t c = 0; c < 3; ++c) {
      pixels[i + c] = matrix[c][0] * rgb[0] + matrix[c][1] * rgb[1] + matrix[c][2] * rgb[2];
    }
  }
}

void change_in_yiq(std::span<float> pixels, float saturation, float turn) {
  const float u = saturation * std::cos(turn), w = saturation * std::sin(turn);
  const Matrix change{{{1, 0, 0}, {0, u, -w}, {0, w, u}}};
  multiply(pixels, product(product(yiq_to_rgb, change), rgb_to_yiq));
}

struct Hsv {
  float hue = 0, saturation = 0, value = 0;  // hue: turns, in [0, 1)
};

Hsv to_hsv(float r, float g, float b) {
  const float most = std::max({r, g, b}), range = most - std::min({r, g, b});
  Hsv hsv{.saturation = most > 0 ? range / most : 0, .value = most};
  if (range > 0) {
    const float sixth = 1 / (6 * range);
    hsv.hue = most == r ? sixth * (g - b)
                        : (most == g ? sixth * (b - r) + 2.0F / 6 : sixth * (r - g) + 4.0F / 6);
    hsv.hue += hsv.hue < 0 ? 1 : 0;
  }
  return hsv;
}

std::array<float, 3> to_rgb(const Hsv& hsv) {
  const auto channel = [&](float offset) {
    const float at = std::fmod(hsv.hue * 6 + offset, 6.0F);
    const float share = std::clamp(std::abs(at - 3) - 1, 0.0F, 1.0F);
    return hsv.value * (1 - hsv.saturation * (1 - share));
  };
  return {channel(0), channel(4), channel(2)};
}

void change_in_hsv(std::span<float> pixels, float saturation, float turn) {
  for (std::size_t i = 0; i < pixels.size(); i += 3) {
    Hsv hsv = to_hsv(pixels[i], pixels[i + 1], pixels[i + 2]);
    hsv.saturation = std::clamp(hsv.saturation * saturation, 0.0F, 1.0F);
    hsv.hue = hsv.hue + turn - std::floor(hsv.hue + turn);
    std::ranges::copy(to_rgb(hsv), pixels.begin() + static_cast<std::ptrdiff_t>(i));
  }
}

}  // namespace

void distort_colours(std::span<float> pixels, ColourSpace space, bool at_odd_place,
                     RandomStream& random) {
  const float brightness = random.uniform(-max_brightness, max_brightness);
  const float saturation = random.uniform(min_factor, max_factor);
  const float hue = random.uniform(-max_hue, max_hue);
  const float contrast = random.uniform(min_factor, max_factor);
  change_brightness(pixels, brightness);
  if (at_odd_place) {
    change_contrast(pixels, contrast);
  }
  if (space == ColourSpace::yiq) {
    change_in_yiq(pixels, saturation, hue * std::numbers::pi_v<float>);
  } else {
    change_in_hsv(pixels, saturation, hue);
  }
  if (!at_odd_place) {
    change_contrast(pixels, contrast);
  }
  for (float& value : pixels) {
    value = std::clamp(value, 0.0F, 1.0F);
  }
}

}  // namespace cnn::data
