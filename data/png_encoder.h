#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace cnn::data {

// Returns a PNG file of an image with three bytes (red, green, blue) per pixel, row by row.
std::vector<std::byte> encode_png(std::int64_t height, std::int64_t width,
                                  std::span<const std::uint8_t> pixels);

}  // namespace cnn::data
