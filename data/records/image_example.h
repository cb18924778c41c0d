#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "data/box.h"

namespace cnn::data {

// The parts of ImageNet's tf.train.Example records that training needs.
struct ImageExample {
  std::span<const std::byte> encoded;  // a JPEG or PNG file, inside the record
  std::int64_t label = 0;
  std::vector<Box> boxes;
};

// Parses a record. Throws Error without a file name if it is not a tf.train.Example with
// image/encoded and image/class/label, or if its boxes are incomplete. Memory is bounded by the
// record's size.
ImageExample parse_image_example(std::span<const std::byte> record);

// The features that TensorFlow's converters write for an image.
struct ImageFeatures {
  std::span<const std::byte> encoded;
  std::string format = "JPEG";
  std::string file_name, synset, text;  // synset: name of the class folder
  std::int64_t label = 0, height = 0, width = 0, channels = 3;
  std::vector<Box> boxes;
};

// Returns the serialised tf.train.Example.
std::vector<std::byte> image_example_record(const ImageFeatures& features);

}  // namespace cnn::data
