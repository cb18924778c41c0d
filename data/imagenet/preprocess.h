#pragma once

#include <cstdint>
#include <span>

#include "data/box.h"
#include "data/dataset.h"
#include "data/images/decoder.h"
#include "data/images/resize.h"

namespace cnn::data {

// The buffers that one thread needs to decode and resize images, kept from one to the next.
struct PreprocessScratch {
  ImageDecoder decoder;
  Pixels pixels, whole;
  Resizer resizer;
};

// Time spent on one image.
struct PreprocessTimes {
  std::int64_t decode_ns = 0, resize_ns = 0;  // resize: with colours and normalisation
};

// An image file and what is known of it.
struct EncodedImage {
  std::span<const std::byte> file;
  std::span<const Box> boxes;
  Place place;
};

// The original's preprocessing of ImageNet. Training: a random crop, a flip half of the time,
// a resize that ignores the aspect, with --distortions other colours. Evaluation: a central crop.
// Then values in [-1, 1], or without channel means. A function of the file, the options and the
// place. out: side x side x 3 floats.
PreprocessTimes preprocess(const EncodedImage& image, const ImageOptions& options, bool training,
                           PreprocessScratch& scratch, std::span<float> out);

}  // namespace cnn::data
