#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "data/images/pixels.h"

namespace cnn::data {

// The methods of TensorFlow's image preprocessing: corners aligned at 0, no anti-aliasing. Their
// values are the order of --resize_method=round_robin.
enum class ResizeMethod : std::uint8_t { nearest, bilinear, bicubic, area };

// One axis of a resize: every output pixel is a weighted sum of `taps` input pixels. Entry t *
// outputs + i belongs to tap t of output i.
struct ResizeAxis {
  std::size_t taps = 0, outputs = 0;
  std::vector<std::int32_t> source;  // input pixels, clamped to the image
  std::vector<float> weight;
};

// A part of a resize from `in` to `out` pixels: `count` output pixels from `first` on.
struct AxisRequest {
  int in = 0, out = 0, first = 0, count = 0;
};
ResizeAxis resize_axis(ResizeMethod method, const AxisRequest& request);

// The input pixels [begin, end) that an axis reads.
struct SourceRange {
  int begin = 0, end = 0;
};
SourceRange source_range(const ResizeAxis& axis);

// The transform of a resized value x of channel c: x * scale + shift[c].
struct PixelTransform {
  float scale = 1;
  std::array<float, 3> shift{};
};

// Resizes regions of images to RGB floats, in one pass over rows: convert to float, resize along x,
// mirror, resize along y, scale and shift. Reuses its memory; one thread at a time may use it.
class Resizer {
 public:
  struct Request {
    ResizeAxis rows, columns;  // sources are relative to the region's corner
    bool mirrored = false;     // mirrors the region left to right before the resize
    PixelTransform transform;
  };
  // out: rows.outputs x columns.outputs x 3.
  void resize(const Pixels& from, const Request& request, float* out);

 private:
  void prepare(const Pixels& from, const Request& request);
  void find_windows();
  const float* resized_row(const Pixels& from, int row);

  // Sources of columns: indices of values in a row, per pixel or per value.
  std::vector<std::int32_t> sources_;
  std::vector<float> weights_, shift_, widened_, cache_;
  // As WindowTaps describes them; empty if the loop for windows does not apply.
  std::vector<std::int32_t> windows_;
  std::vector<std::uint8_t> indices_;
  std::vector<float> window_weights_;
  std::vector<int> cached_;  // the source rows in cache_
  // values_, taps_: of an output row; stride_: of a row in cache_
  std::size_t values_ = 0, taps_ = 0, stride_ = 0;
};

}  // namespace cnn::data
