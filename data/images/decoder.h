#pragma once

#include <memory>
#include <span>

#include "data/images/codec.h"

namespace cnn::data {

// Decodes JPEG and PNG files by their content, not their name.
class ImageDecoder {
 public:
  ImageSize open(std::span<const std::byte> encoded);
  void decode(const Region& region, Pixels& into);

 private:
  std::unique_ptr<Codec> jpeg_, png_;  // made at first use
  Codec* current_ = nullptr;
  ImageSize size_;
};

}  // namespace cnn::data
