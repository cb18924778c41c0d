#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "data/images/pixels.h"

namespace cnn::data {

// Decodes images of one file format, one after the other, reusing its memory. For one thread at a
// time. Throws Error without a file name where the bytes are no such image.
class Codec {
 public:
  virtual ~Codec() = default;
  // Reads the header. `encoded` must live until decode() returned.
  virtual ImageSize open(std::span<const std::byte> encoded) = 0;
  // Decodes a region of the image that was opened last; once for each open().
  virtual void decode(const Region& region, Pixels& into) = 0;
};

// Whether a file starts as that format does.
bool is_jpeg(std::span<const std::byte> encoded);
bool is_png(std::span<const std::byte> encoded);

// Each has two implementations, of which the build takes one: with the library, or one that throws
// Error because the program was built without it.
std::unique_ptr<Codec> make_jpeg_codec();
std::unique_ptr<Codec> make_png_codec();
bool has_jpeg_codec();

}  // namespace cnn::data
