#pragma once

#include <cstdint>

#include "data/dataset.h"

namespace cnn::data {

// Pads each side with `padding` zeros, cuts out the original size at a random place and mirrors it
// left to right half of the time. A function of seed and position only.
Transform crop_and_flip(const ImageFormat& format, int padding, std::uint64_t seed);

}  // namespace cnn::data
