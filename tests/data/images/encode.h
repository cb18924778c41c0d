#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace cnn::data {

// The function that paints a test image: the value of a channel at a row and column.
using Painting = std::function<std::uint8_t(int row, int column, int channel)>;

enum class JpegKind : std::uint8_t { colour, subsampled, grey, cmyk, progressive };

// Returns a JPEG file of quality 100. Like Adobe's programs, cmyk stores inverted inks: 255 - value
// for each colour, and no black.
std::string jpeg_of(int height, int width, JpegKind kind, const Painting& painting);
std::string png_of(int height, int width, const Painting& painting);

// Paints a smooth image whose rows, columns and channels all differ.
std::uint8_t gradient(int row, int column, int channel);

}  // namespace cnn::data
