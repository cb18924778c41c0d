#pragma once

#include <algorithm>
#include <cstdint>

#include "runtime/tensor.h"

namespace cnn::layers::cpu {

// The pixels of x [N,C,H,W] that the pixels of y [N,O,P,Q] read in a 1 x 1 convolution: pixel
// (p, q) reads pixel (p stride_h, q stride_w).
struct StridedPixels {
  const Shape &x, &y;
  std::int64_t stride_h = 1, stride_w = 1;

  // Returns the number of the pixel of x that pixel number `pixel` of y reads, both counted over
  // all images.
  std::int64_t operator()(std::int64_t pixel) const {
    if (stride_h == 1 && stride_w == 1) {
      return pixel;
    }
    const std::int64_t line = pixel / y[3], column = pixel % y[3];
    const std::int64_t image = line / y[2], row = line % y[2];
    return (image * x[2] + row * stride_h) * x[3] + column * stride_w;
  }
};

// Pixels that follow each other in an image of y, and are equally far apart in x.
struct PixelRun {
  std::int64_t image = 0, first_x = 0, first_y = 0;  // pixels within the image
  std::int64_t step_x = 1;                           // pixels of x from one to the next
  std::int64_t count = 0;
};

// Calls visit(run, pixels before it) for the runs of pixels [first, first + count) of y, which are
// counted over all images.
template <class Visit>
void each_run(const StridedPixels& pixels, std::int64_t first, std::int64_t count,
              const Visit& visit) {
  const bool dense = pixels.stride_h == 1 && pixels.stride_w == 1;
  const std::int64_t of_x = pixels.x[2] * pixels.x[3], of_y = pixels.y[2] * pixels.y[3];
  const std::int64_t longest = dense ? of_y : pixels.y[3];
  for (std::int64_t done = 0; done < count;) {
    const std::int64_t pixel = first + done;
    const std::int64_t length = std::min(count - done, longest - pixel % longest);
    const std::int64_t image = pixel / of_y;
    visit(PixelRun{.image = image,
                   .first_x = pixels(pixel) - image * of_x,
                   .first_y = pixel - image * of_y,
                   .step_x = dense ? 1 : pixels.stride_w,
                   .count = length},
          done);
    done += length;
  }
}

// Elements from one image, block of 16 channels and pixel to the next, in nhwc or nchw16c.
struct BlockStrides {
  std::int64_t image, block, pixel;

  // Returns the place of the first channel of a block, of a pixel within an image.
  std::int64_t place(std::int64_t image_number, std::int64_t block_number,
                     std::int64_t pixel_number) const {
    return image_number * image + block_number * block + pixel_number * pixel;
  }
};
inline BlockStrides block_strides(const TensorDesc& images) {
  constexpr std::int64_t channels_of_block = 16;
  const std::int64_t channels = images.shape[1], pixels = images.shape[2] * images.shape[3];
  return images.layout == Layout::nhwc
             ? BlockStrides{pixels * channels, channels_of_block, channels}
             : BlockStrides{pixels * channels, pixels * channels_of_block, channels_of_block};
}

}  // namespace cnn::layers::cpu
