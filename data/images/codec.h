#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "data/images/pixels.h"

namespace cnn::data {

// Decodes images of one file format and reuses its memory. One thread at a time may use it. Throws
// Error without a file name if the bytes are not an image of that format.
class Codec {
 public:
  virtual ~Codec() = default;
  // Reads the header. `encoded` must live until decode() returns.
  virtual ImageSize open(std::span<const std::byte> encoded) = 0;
  // Decodes a region of the image opened last; once per open().
  virtual void decode(const Region& region, Pixels& into) = 0;
};

// Return whether a file starts with the signature of that format.
bool is_jpeg(std::span<const std::byte> encoded);
bool is_png(std::span<const std::byte> encoded);

// Each function has two implementations, one of which the build links: with the library, or one
// that throws Error because the program was built without it.
std::unique_ptr<Codec> make_jpeg_codec();
std::unique_ptr<Codec> make_png_codec();
bool has_jpeg_codec();

}  // namespace cnn::data
