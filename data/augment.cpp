#include "data/augment.h"

#include <algorithm>
#include <cstring>

#include "data/random.h"

namespace cnn::data {
namespace {

struct Crop {
  int down = 0, right = 0;  // offset of the crop in the original; negative: starts in the padding
  bool mirrored = false;
};

void cut(const ImageFormat& format, const Crop& crop, const std::byte* from, std::byte* to) {
  const auto pixel = static_cast<std::size_t>(format.channels) * size_of(format.type);
  for (int y = 0; y < format.height; ++y) {
    for (int x = 0; x < format.width; ++x) {
      const int row = y + crop.down;
      const int column = (crop.mirrored ? format.width - 1 - x : x) + crop.right;
      const bool inside = row >= 0 && row < format.height && column >= 0 && column < format.width;
      const auto target = static_cast<std::size_t>(y * format.width + x) * pixel;
      if (inside) {
        std::memcpy(to + target,
                    from + static_cast<std::size_t>(row * format.width + column) * pixel, pixel);
      } else {
        std::memset(to + target, 0, pixel);
      }
    }
  }
}

}  // namespace

Transform crop_and_flip(const ImageFormat& format, int padding, std::uint64_t seed) {
  return [format, padding, seed](std::span<const std::byte> from, std::span<std::byte> to,
                                 std::int64_t position) {
    const std::uint64_t bits = random_bits(seed, static_cast<std::uint64_t>(position));
    const std::uint64_t offsets = 2 * static_cast<std::uint64_t>(padding) + 1;
    const Crop crop{static_cast<int>((bits & 0xFFFFF) % offsets) - padding,
                    static_cast<int>(((bits >> 20) & 0xFFFFF) % offsets) - padding,
                    (bits >> 63) != 0};
    cut(format, crop, from.data(), to.data());
  };
}

}  // namespace cnn::data
