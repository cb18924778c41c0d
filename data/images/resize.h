#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "data/images/pixels.h"

namespace cnn::data {

// TensorFlow's methods as its image preprocessing used them: corners aligned at 0, no
// anti-aliasing. Their numbers are the order of --resize_method=round_robin.
enum class ResizeMethod : std::uint8_t { nearest, bilinear, bicubic, area };

// One axis of a resize: every output pixel is a weighted sum of `taps` input pixels. Entry
// t * outputs + i belongs to tap t of output i.
struct ResizeAxis {
  std::size_t taps = 0, outputs = 0;
  std::vector<std::int32_t> source;  // in the input, clamped to it
  std::vector<float> weight;
};

// A part of the output of a resize of `in` pixels to `out`: `count` pixels from `first` on.
struct AxisRequest {
  int in = 0, out = 0, first = 0, count = 0;
};
ResizeAxis resize_axis(ResizeMethod method, const AxisRequest& request);

// The input pixels that an axis reads: first and one behind the last.
struct SourceRange {
  int begin = 0, end = 0;
};
SourceRange source_range(const ResizeAxis& axis);

// The operation on a resized value x of channel c: x * scale + shift[c].
struct PixelTransform {
  float scale = 1;
  std::array<float, 3> shift{};
};

// Resizes regions of images to RGB floats, in one pass over rows: widen, resize along x, mirror,
// resize along y, scale and shift. Keeps its memory; for one thread at a time.
class Resizer {
 public:
  struct Request {
    ResizeAxis rows, columns;  // sources count from the region's corner
    bool mirrored = false;     // the region left to right, before it is resized
    PixelTransform transform;
  };
  // out: rows.outputs x columns.outputs x 3.
  void resize(const Pixels& from, const Request& request, float* out);

 private:
  void prepare(const Pixels& from, const Request& request);
  const float* resized_row(const Pixels& from, int row);

  std::vector<std::int32_t> sources_;  // of columns: values in a row, for each pixel or value
  std::vector<float> weights_, shift_, widened_, cache_;
  std::vector<int> cached_;                         // the source rows that lie in cache_
  std::size_t values_ = 0, taps_ = 0, stride_ = 0;  // of an output row; stride: in cache_
};

}  // namespace cnn::data
