#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace cnn::data {

struct ImageSize {
  int height = 0, width = 0;
  bool operator==(const ImageSize&) const = default;
};

// A rectangle of an image, in pixels.
struct Region {
  int top = 0, left = 0, height = 0, width = 0;
  bool operator==(const Region&) const = default;
};

// 8-bit RGB pixels of a region, row after row. The vector may be larger than the region needs, so
// that its memory serves images of all sizes.
struct Pixels {
  Region region;  // of the whole image
  std::vector<std::uint8_t> rgb;

  std::size_t row_bytes() const { return 3 * static_cast<std::size_t>(region.width); }
  void reserve(const Region& wanted) {
    region = wanted;
    constexpr std::size_t slack = 16;  // fast loops read a little further
    const std::size_t bytes = row_bytes() * static_cast<std::size_t>(region.height) + slack;
    if (rgb.size() < bytes) {
      rgb.resize(bytes);
    }
  }
};

// Images with more pixels are refused: what claims to be larger is damaged or hostile.
constexpr std::int64_t most_pixels = 100'000'000;

}  // namespace cnn::data
