#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace cnn::data {

// Encodes an image of three bytes (red, green, blue) a pixel, row by row, as a PNG file.
std::vector<std::byte> encode_png(std::int64_t height, std::int64_t width,
                                  std::span<const std::uint8_t> pixels);

}  // namespace cnn::data
