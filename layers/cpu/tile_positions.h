#pragma once

#include <cstdint>

#include "layers/window.h"
#include "runtime/tensor.h"

namespace cnn::layers::cpu {

// Numbers the positions of a batch x [N,I,H,W] and dy [N,O,P,Q] so that each tap of the window
// joins position n of dy with position n + constant of x. Rows and images overlap in what is
// padding at the end of one and at the start of the next. With a stride x is split into one image
// for each remainder of rows and columns by it, its phases.
class TilePositions {
 public:
  TilePositions(const Shape& x, const Shape& y, const Window& window);

  std::int64_t count() const { return count_; }  // up to the last pixel of dy
  std::int64_t phases() const { return phases_h_ * phases_w_; }
  // The largest shift: x has so many positions more than dy.
  std::int64_t halo() const;
  std::int64_t phase_of(std::int64_t tap) const;
  std::int64_t shift_of(std::int64_t tap) const;

  // Write the numbers of the pixels at `count` positions; -1: none, which counts as zero. The first
  // may be negative.
  void list_dy(std::int64_t first, std::int64_t count, std::int32_t* to) const;
  void list_x(std::int64_t phase, std::int64_t first, std::int64_t count, std::int32_t* to) const;

 private:
  // A row of an image at each `pitch_` positions, an image at each `rows_` rows. The pixel of row
  // r and column c is r stride_h + first_h, c stride_w + first_w, where that lies in the image.
  struct Listing {
    std::int64_t height, width;
    std::int64_t stride_h = 1, stride_w = 1, first_h = 0, first_w = 0;
  };
  void list(const Listing& image, std::int64_t first, std::int64_t count, std::int32_t* to) const;

  Window window_;
  std::int64_t images_, height_, width_, y_height_, y_width_;
  std::int64_t phases_h_, phases_w_, pitch_ = 0, rows_ = 0, count_ = 0;
};

}  // namespace cnn::layers::cpu
