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
  Region region;    // within the whole image
  int margin = 0;   // pixels stored in each row before those of the region
  int columns = 0;  // pixels stored in each row
  std::vector<std::uint8_t> rgb;

  // Returns the first value of row y of the region.
  const std::uint8_t* row(int y) const { return rgb.data() + offset_of(y); }
  std::uint8_t* row(int y) { return rgb.data() + offset_of(y); }
  std::size_t row_bytes() const { return 3 * static_cast<std::size_t>(region.width); }

  // Makes room for the region alone.
  void reserve(const Region& wanted) { reserve(wanted, 0, wanted.width); }
  // Makes room for rows of so many columns, of which the first `left` lie before the region: a
  // decoder of whole blocks then writes its rows in place.
  void reserve(const Region& wanted, int left, int stored) {
    region = wanted;
    margin = left;
    columns = stored;
    constexpr std::size_t slack = 64;  // SIMD loops read past the end
    const std::size_t bytes = offset_of(region.height) + slack;
    if (rgb.size() < bytes) {
      rgb.resize(bytes);
    }
  }

 private:
  std::size_t offset_of(int y) const {
    return 3 * (static_cast<std::size_t>(y) * static_cast<std::size_t>(columns) +
                static_cast<std::size_t>(margin));
  }
};

// Larger images are refused as damaged or hostile, in pixels.
constexpr std::int64_t max_pixels = 100'000'000;

}  // namespace cnn::data
