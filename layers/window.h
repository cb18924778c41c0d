#pragma once

#include <cstdint>
#include <string_view>

namespace cnn::layers {

// The geometry of a window that slides over a padded image; sizes in pixels.
struct Window {
  std::int64_t kernel_h = 1, kernel_w = 1;
  std::int64_t stride_h = 1, stride_w = 1;
  std::int64_t pad_top = 0, pad_bottom = 0, pad_left = 0, pad_right = 0;

  std::int64_t output_h(std::int64_t height) const {
    return (height + pad_top + pad_bottom - kernel_h) / stride_h + 1;
  }
  std::int64_t output_w(std::int64_t width) const {
    return (width + pad_left + pad_right - kernel_w) / stride_w + 1;
  }
  bool operator==(const Window&) const = default;
};

// same: TensorFlow's rule, out = ceil(in / stride), the odd pixel at the bottom and right. valid:
// no padding. same_resnet: as same for stride 1, else (k - 1) in total, floor((k - 1) / 2) first.
enum class Padding : std::uint8_t { same, valid, same_resnet };

// Returns the window with its padding for an image of height x width. Throws Error with `layer` if
// no window fits.
Window padded(Window window, Padding padding, std::int64_t height, std::int64_t width,
              std::string_view layer);

}  // namespace cnn::layers
