#pragma once

#include <cstdint>

#include "data/dataset.h"

namespace cnn::data {

// Returns a transform that pads each side with `padding` zeros, crops the original size at a random
// place and mirrors half of the images left to right. Random draws depend on seed and position
// only.
Transform crop_and_flip(const ImageFormat& format, int padding, std::uint64_t seed);

}  // namespace cnn::data
