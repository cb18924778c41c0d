#include "data/images/decoder.h"

#include <algorithm>
#include <array>

#include "runtime/error.h"

namespace cnn::data {
namespace {

template <std::size_t size>
bool starts_with(std::span<const std::byte> bytes, const std::array<unsigned char, size>& magic) {
  return bytes.size() >= size &&
         std::equal(magic.begin(), magic.end(), bytes.begin(),
                    [](unsigned char a, std::byte b) { return static_cast<std::byte>(a) == b; });
}

}  // namespace

bool is_jpeg(std::span<const std::byte> encoded) {
  return starts_with(encoded, std::array<unsigned char, 3>{0xFF, 0xD8, 0xFF});
}

bool is_png(std::span<const std::byte> encoded) {
  return starts_with(encoded, std::array<unsigned char, 8>{0x89, 'P', 'N', 'G', 13, 10, 26, 10});
}

ImageSize ImageDecoder::open(std::span<const std::byte> encoded) {
  current_ = nullptr;
  check(is_jpeg(encoded) || is_png(encoded), "the image is neither a JPEG nor a PNG file");
  std::unique_ptr<Codec>& codec = is_jpeg(encoded) ? jpeg_ : png_;
  if (codec == nullptr) {
    codec = is_jpeg(encoded) ? make_jpeg_codec() : make_png_codec();
  }
  size_ = codec->open(encoded);
  check(size_.height > 0 && size_.width > 0, "the image has no pixels");
  current_ = codec.get();
  return size_;
}

void ImageDecoder::decode(const Region& region, Pixels& into) {
  check(current_ != nullptr, "no image is open");
  check(region.top >= 0 && region.left >= 0 && region.height > 0 && region.width > 0 &&
            region.height <= size_.height - region.top && region.width <= size_.width - region.left,
        "a region outside of its image");
  current_->decode(region, into);
}

}  // namespace cnn::data
