#pragma once

#include <span>

#include "data/box.h"
#include "data/images/pixels.h"
#include "data/images/random_stream.h"

namespace cnn::data {

// Returns the random crop of ImageNet training, drawn like TensorFlow's
// sample_distorted_bounding_box: aspect 0.75 to 1.33, 5 to 100 percent of the area, at least 10
// percent of one of the boxes (or of the image without boxes); the whole image if 100 attempts
// fail.
Region sample_crop(const ImageSize& image, std::span<const Box> boxes, RandomStream& random);

// The central crop of evaluation: the image is resized to `resized`, and its middle pixels are
// kept.
struct CentralCrop {
  ImageSize resized;
  int top = 0, left = 0;  // of the crop in the resized image
};

// Returns upstream's crop: resizes to the smallest size that covers `out`, times 1.145, with the
// same aspect ratio.
CentralCrop central_crop(const ImageSize& image, const ImageSize& out);

// Returns the crop of TensorFlow's official models: resizes the shorter side to 256, with the same
// aspect ratio. Throws Error if `out` is larger.
CentralCrop official_central_crop(const ImageSize& image, const ImageSize& out);

}  // namespace cnn::data
