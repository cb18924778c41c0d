#include "layers/cpu/tile_positions.h"

#include <algorithm>

#include "runtime/divide_up.h"

namespace cnn::layers::cpu {
namespace {

// The padding of one dimension of x, of which rows or columns are taken from `first` on, by a
// stride: how many of the first and last ones lie outside.
std::int64_t shared_padding(std::int64_t first, std::int64_t stride, std::int64_t count,
                            std::int64_t size) {
  const std::int64_t before = first < 0 ? divide_up(-first, stride) : 0;
  const std::int64_t inside = size > first ? divide_up(size - first, stride) : 0;
  return std::min(before, std::max<std::int64_t>(0, count - inside));
}

// Returns how many places a row or an image takes that has `count` places of y.
std::int64_t places_of(std::int64_t count, std::int64_t kernel, std::int64_t stride,
                       std::int64_t pad, std::int64_t size) {
  std::int64_t places = count;
  for (std::int64_t phase = 0; phase < std::min(kernel, stride); ++phase) {
    const std::int64_t needed = count + (kernel - 1 - phase) / stride;
    places = std::max(places, needed - shared_padding(phase - pad, stride, needed, size));
  }
  return places;
}

}  // namespace

TilePositions::TilePositions(const Shape& x, const Shape& y, const Window& window)
    : window_(window),
      images_(x[0]),
      height_(x[2]),
      width_(x[3]),
      y_height_(y[2]),
      y_width_(y[3]),
      phases_h_(std::min(window_.kernel_h, window_.stride_h)),
      phases_w_(std::min(window_.kernel_w, window_.stride_w)) {
  pitch_ = places_of(y_width_, window_.kernel_w, window_.stride_w, window_.pad_left, width_);
  rows_ = places_of(y_height_, window_.kernel_h, window_.stride_h, window_.pad_top, height_);
  count_ = ((images_ - 1) * rows_ + y_height_ - 1) * pitch_ + y_width_;
}

std::int64_t TilePositions::halo() const {
  return (window_.kernel_h - 1) / window_.stride_h * pitch_ +
         (window_.kernel_w - 1) / window_.stride_w;
}

std::int64_t TilePositions::phase_of(std::int64_t tap) const {
  const std::int64_t h = tap / window_.kernel_w, w = tap % window_.kernel_w;
  return h % window_.stride_h * phases_w_ + w % window_.stride_w;
}

std::int64_t TilePositions::shift_of(std::int64_t tap) const {
  const std::int64_t h = tap / window_.kernel_w, w = tap % window_.kernel_w;
  return h / window_.stride_h * pitch_ + w / window_.stride_w;
}

void TilePositions::list_dy(std::int64_t first, std::int64_t count, std::int32_t* to) const {
  list({.height = y_height_, .width = y_width_}, first, count, to);
}

void TilePositions::list_x(std::int64_t phase, std::int64_t first, std::int64_t count,
                           std::int32_t* to) const {
  list({.height = height_,
        .width = width_,
        .stride_h = window_.stride_h,
        .stride_w = window_.stride_w,
        .first_h = phase / phases_w_ - window_.pad_top,
        .first_w = phase % phases_w_ - window_.pad_left},
       first, count, to);
}

void TilePositions::list(const Listing& image, std::int64_t first, std::int64_t count,
                         std::int32_t* to) const {
  for (; first < 0 && count > 0; ++first, --count) {
    *to++ = -1;
  }
  std::int64_t column = first % pitch_, row = first / pitch_ % rows_;
  std::int64_t number = first / pitch_ / rows_;
  for (std::int64_t i = 0; i < count;) {
    const std::int64_t h = row * image.stride_h + image.first_h;
    const bool exists = number < images_ && h >= 0 && h < image.height;
    const std::int64_t start = (number * image.height + h) * image.width;
    for (; column < pitch_ && i < count; ++column, ++i) {
      const std::int64_t w = column * image.stride_w + image.first_w;
      to[i] = exists && w >= 0 && w < image.width ? static_cast<std::int32_t>(start + w) : -1;
    }
    column = 0;
    if (++row == rows_) {
      row = 0;
      ++number;
    }
  }
}

}  // namespace cnn::layers::cpu
