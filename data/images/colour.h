#pragma once

#include <cstdint>
#include <span>

#include "data/images/random_stream.h"

namespace cnn::data {

enum class ColourSpace : std::uint8_t { yiq, hsv };

// Applies --distortions to ImageNet's training images: random brightness, saturation, hue and
// contrast, then a clamp to [0, 1]. Examples at odd places of a batch change contrast before
// saturation and hue. pixels: RGB in [0, 1], three values for each.
void distort_colours(std::span<float> pixels, ColourSpace space, bool at_odd_place,
                     RandomStream& random);

}  // namespace cnn::data
