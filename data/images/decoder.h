#pragma once

#include <memory>
#include <span>

#include "data/images/codec.h"

namespace cnn::data {

// Decodes JPEG and PNG files, whatever their name says.
class ImageDecoder {
 public:
  ImageSize open(std::span<const std::byte> encoded);
  void decode(const Region& region, Pixels& into);

 private:
  std::unique_ptr<Codec> jpeg_, png_;  // made when first needed
  Codec* current_ = nullptr;
  ImageSize size_;
};

}  // namespace cnn::data
