#pragma once

#include <span>

#include "data/box.h"
#include "data/images/pixels.h"
#include "data/images/random_stream.h"

namespace cnn::data {

// Returns the random crop of ImageNet training, as TensorFlow's sample_distorted_bounding_box draws
// it: aspect 0.75 to 1.33, 5 to 100 percent of the area, at least 10 percent of one of the boxes
// (of the whole image where there are none); the whole image if 100 attempts fail.
Region sample_crop(const ImageSize& image, std::span<const Box> boxes, RandomStream& random);

// The central crop of evaluation: the image is resized to `resized` and the `out` pixels in its
// middle are kept.
struct CentralCrop {
  ImageSize resized;
  int top = 0, left = 0;  // of the crop in the resized image
};

// Returns the crop of the original: the smallest size that covers `out`, times 1.145, with the same
// aspect.
CentralCrop central_crop(const ImageSize& image, const ImageSize& out);

// Returns the crop of TensorFlow's official models: the shorter side becomes 256, with the same
// aspect. Throws Error if `out` is larger.
CentralCrop official_central_crop(const ImageSize& image, const ImageSize& out);

}  // namespace cnn::data
