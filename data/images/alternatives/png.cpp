#include <algorithm>
#include <array>
#include <csetjmp>
#include <cstring>
#include <png.h>
#include <string>
#include <vector>

#include "data/images/codec.h"
#include "runtime/error.h"

namespace cnn::data {
namespace {

// Deflate compresses at most about 1030 to 1, and a byte holds at most eight pixels.
constexpr std::int64_t max_pixels_per_png_byte = 8800;

// The library's state of one file. It reports errors through callbacks that must not return; as it
// is C, the callback uses longjmp.
struct PngReader {
  explicit PngReader(std::span<const std::byte> encoded) : left(encoded) {}
  ~PngReader() { png_destroy_read_struct(&png, &info, nullptr); }
  PngReader(const PngReader&) = delete;
  PngReader& operator=(const PngReader&) = delete;

  std::span<const std::byte> left;  // bytes not read yet
  png_structp png = nullptr;
  png_infop info = nullptr;
  std::jmp_buf back{};
  std::array<char, 120> message{};
};

[[noreturn]] void leave(png_structp png, png_const_charp text) {
  auto& reader = *static_cast<PngReader*>(png_get_error_ptr(png));
  std::strncpy(reader.message.data(), text, reader.message.size() - 1);
  std::longjmp(reader.back, 1);  // NOLINT: no object with a destructor lives in between
}

void ignore_warning(png_structp /*png*/, png_const_charp /*text*/) {}

void read_bytes(png_structp png, png_bytep into, std::size_t bytes) {
  auto& reader = *static_cast<PngReader*>(png_get_io_ptr(png));
  if (reader.left.size() < bytes) {
    png_error(png, "the file ends within its pixels");
  }
  std::memcpy(into, reader.left.data(), bytes);
  reader.left = reader.left.subspan(bytes);
}

// No object with a destructor may live in the next functions: errors longjmp out of them.
bool read_header(PngReader& reader) {
  if (setjmp(reader.back) != 0) {  // NOLINT: as libpng asks for
    return false;
  }
  reader.png = png_create_read_struct(PNG_LIBPNG_VER_STRING, &reader, leave, ignore_warning);
  reader.info = reader.png == nullptr ? nullptr : png_create_info_struct(reader.png);
  if (reader.info == nullptr) {
    return false;
  }
  png_set_read_fn(reader.png, &reader, read_bytes);
  png_read_info(reader.png, reader.info);
  return true;
}

// Gives 8-bit RGB as TensorFlow's decoder does: the high byte of 16 bits, colours as they are
// behind transparency, and no correction by the gamma that a file may name.
bool read_pixels(PngReader& reader, png_bytepp rows) {
  if (setjmp(reader.back) != 0) {  // NOLINT
    return false;
  }
  png_set_expand(reader.png);  // palettes, and grey of fewer than eight bits
  png_set_strip_16(reader.png);
  png_set_strip_alpha(reader.png);
  png_set_gray_to_rgb(reader.png);
  png_set_interlace_handling(reader.png);
  png_read_update_info(reader.png, reader.info);
  png_read_image(reader.png, rows);
  png_read_end(reader.png, nullptr);
  return true;
}

[[noreturn]] void refuse(const PngReader& reader) {
  throw Error("the PNG file is damaged: " + std::string(reader.message.data()));
}

// PNG files are rare (ImageNet has one), so each is decoded completely.
class Png final : public Codec {
 public:
  ImageSize open(std::span<const std::byte> encoded) override {
    PngReader reader(encoded);
    if (!read_header(reader)) {
      refuse(reader);
    }
    const std::int64_t height = png_get_image_height(reader.png, reader.info);
    const std::int64_t width = png_get_image_width(reader.png, reader.info);
    check(height <= max_pixels && width <= max_pixels && height * width <= max_pixels &&
              height * width <= max_pixels_per_png_byte * static_cast<std::int64_t>(encoded.size()),
          "the PNG file claims " + std::to_string(width) + " x " + std::to_string(height) +
              " pixels in " + std::to_string(encoded.size()) + " bytes");
    encoded_ = encoded;
    size_ = {static_cast<int>(height), static_cast<int>(width)};
    return size_;
  }

  void decode(const Region& region, Pixels& into) override {
    const std::size_t stride = 3 * static_cast<std::size_t>(size_.width);
    std::vector<std::uint8_t> whole(stride * static_cast<std::size_t>(size_.height));
    std::vector<png_bytep> rows;
    for (int y = 0; y < size_.height; ++y) {
      rows.push_back(whole.data() + static_cast<std::size_t>(y) * stride);
    }
    PngReader reader(encoded_);
    if (!read_header(reader) || !read_pixels(reader, rows.data())) {
      refuse(reader);
    }
    into.reserve(region);
    for (int y = 0; y < region.height; ++y) {
      const png_bytep row = rows[static_cast<std::size_t>(region.top + y)];
      std::copy_n(row + std::ptrdiff_t{3} * region.left, into.row_bytes(), into.row(y));
    }
  }

 private:
  std::span<const std::byte> encoded_;
  ImageSize size_;
};

}  // namespace

std::unique_ptr<Codec> make_png_codec() { return std::make_unique<Png>(); }

}  // namespace cnn::data
