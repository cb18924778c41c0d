#pragma once

namespace cnn::data {

// A bounding box of an object, in fractions of the image's height and width.
struct Box {
  float ymin = 0, xmin = 0, ymax = 1, xmax = 1;
  bool operator==(const Box&) const = default;
};

}  // namespace cnn::data
