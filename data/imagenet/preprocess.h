#pragma once

#include <cstdint>
#include <span>

#include "data/box.h"
#include "data/dataset.h"
#include "data/images/decoder.h"
#include "data/images/resize.h"

namespace cnn::data {

// The buffers that one thread reuses to decode and resize images.
struct PreprocessScratch {
  ImageDecoder decoder;
  Pixels pixels, whole;
  Resizer resizer;
};

// The time spent on one image.
struct PreprocessTimes {
  std::int64_t decode_ns = 0, resize_ns = 0;  // resize includes colours and normalisation
};

// An encoded image with its bounding boxes and place.
struct EncodedImage {
  std::span<const std::byte> file;
  std::span<const Box> boxes;
  Place place;
};

// Applies upstream's preprocessing of ImageNet. Training: a random crop, a flip of half of the
// images, a resize that ignores the aspect ratio, and with --distortions random colours.
// Evaluation: a central crop. Then scales values to [-1, 1], or subtracts channel means.
// Deterministic in the file, the options and the place. out: side x side x 3 floats.
PreprocessTimes preprocess(const EncodedImage& image, const ImageOptions& options, bool training,
                           PreprocessScratch& scratch, std::span<float> out);

}  // namespace cnn::data
