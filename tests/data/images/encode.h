#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace cnn::data {

// Colours of a test image: the value of a channel at a row and column.
using Painting = std::function<std::uint8_t(int row, int column, int channel)>;

enum class JpegKind : std::uint8_t { colour, subsampled, grey, cmyk, progressive };

// JPEG files of quality 100. cmyk: as Adobe's programs write them, inverted, of the colours given
// as inks 255 - value and no black.
std::string jpeg_of(int height, int width, JpegKind kind, const Painting& painting);
std::string png_of(int height, int width, const Painting& painting);

// A smooth image whose rows, columns and channels all differ.
std::uint8_t gradient(int row, int column, int channel);

}  // namespace cnn::data
