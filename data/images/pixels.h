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

// 8-bit RGB pixels of a region, row by row. The vector may be larger than the region needs, so that
// images of all sizes reuse its memory.
struct Pixels {
  Region region;  // within the whole image
  std::vector<std::uint8_t> rgb;

  std::size_t row_bytes() const { return 3 * static_cast<std::size_t>(region.width); }
  void reserve(const Region& wanted) {
    region = wanted;
    constexpr std::size_t slack = 16;  // SIMD loops read past the end
    const std::size_t bytes = row_bytes() * static_cast<std::size_t>(region.height) + slack;
    if (rgb.size() < bytes) {
      rgb.resize(bytes);
    }
  }
};

// Larger images are refused as damaged or hostile, in pixels.
constexpr std::int64_t max_pixels = 100'000'000;

}  // namespace cnn::data
