#include <algorithm>
#include <png.h>
#include <string>

#include "data/images/codec.h"
#include "runtime/error.h"

namespace cnn::data {
namespace {

// Deflate compresses at most about 1030 to 1, and a byte holds at most eight pixels.
constexpr std::int64_t max_pixels_per_png_byte = 8800;

// PNG files are rare (ImageNet has one), so each is decoded completely.
class Png final : public Codec {
 public:
  Png() = default;
  ~Png() override { png_image_free(&image_); }
  Png(const Png&) = delete;
  Png& operator=(const Png&) = delete;

  ImageSize open(std::span<const std::byte> encoded) override {
    png_image_free(&image_);
    image_ = {};
    image_.version = PNG_IMAGE_VERSION;
    check(png_image_begin_read_from_memory(&image_, encoded.data(), encoded.size()) != 0, damage());
    const std::int64_t pixels = std::int64_t{image_.height} * std::int64_t{image_.width};
    check(image_.height <= max_pixels && image_.width <= max_pixels && pixels <= max_pixels &&
              pixels <= max_pixels_per_png_byte * static_cast<std::int64_t>(encoded.size()),
          "the PNG file claims " + std::to_string(image_.width) + " x " +
              std::to_string(image_.height) + " pixels in " + std::to_string(encoded.size()) +
              " bytes");
    return {static_cast<int>(image_.height), static_cast<int>(image_.width)};
  }

  void decode(const Region& region, Pixels& into) override {
    image_.format = PNG_FORMAT_RGB;
    whole_.resize(PNG_IMAGE_SIZE(image_));
    const png_color background{0, 0, 0};  // behind transparent pixels
    const std::size_t stride = PNG_IMAGE_ROW_STRIDE(image_);
    check(png_image_finish_read(&image_, &background, whole_.data(), 0, nullptr) != 0, damage());
    into.reserve(region);
    for (int y = 0; y < region.height; ++y) {
      const std::size_t at = static_cast<std::size_t>(region.top + y) * stride +
                             3 * static_cast<std::size_t>(region.left);
      std::copy_n(whole_.data() + at, into.row_bytes(),
                  into.rgb.data() + static_cast<std::size_t>(y) * into.row_bytes());
    }
    whole_ = {};
  }

 private:
  std::string damage() const {
    return "the PNG file is damaged: " + std::string(static_cast<const char*>(image_.message));
  }

  png_image image_{};
  std::vector<std::uint8_t> whole_;
};

}  // namespace

std::unique_ptr<Codec> make_png_codec() { return std::make_unique<Png>(); }

}  // namespace cnn::data
