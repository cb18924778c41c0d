#include "layers/window.h"

#include <algorithm>
#include <string>

#include "runtime/divide_up.h"
#include "runtime/error.h"

namespace cnn::layers {

namespace {

struct Pads {
  std::int64_t before = 0, after = 0;
};

Pads pads(Padding padding, std::int64_t size, std::int64_t kernel, std::int64_t stride) {
  if (padding == Padding::valid) {
    return {};
  }
  const std::int64_t outputs = divide_up(size, stride);
  const bool fixed = padding == Padding::same_resnet && stride > 1;
  const std::int64_t total =
      fixed ? kernel - 1 : std::max<std::int64_t>((outputs - 1) * stride + kernel - size, 0);
  return {total / 2, total - total / 2};
}

}  // namespace

Window padded(Window window, Padding padding, std::int64_t height, std::int64_t width,
              std::string_view layer) {
  const Pads rows = pads(padding, height, window.kernel_h, window.stride_h);
  const Pads columns = pads(padding, width, window.kernel_w, window.stride_w);
  window.pad_top = rows.before;
  window.pad_bottom = rows.after;
  window.pad_left = columns.before;
  window.pad_right = columns.after;
  if (height + rows.before + rows.after < window.kernel_h ||
      width + columns.before + columns.after < window.kernel_w) {
    throw Error(std::string(layer) + ": a window of " + std::to_string(window.kernel_h) + "x" +
                std::to_string(window.kernel_w) + " does not fit an image of " +
                std::to_string(height) + "x" + std::to_string(width) +
                "; choose a larger --image_size");
  }
  return window;
}

}  // namespace cnn::layers
