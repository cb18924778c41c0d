#pragma once

#include <cstdint>

// The loop of a first convolution's weight gradient; see loops.h for the rules of all loops.
namespace cnn::layers::cpu {

inline constexpr std::int64_t few_channels_block = 16;  // output channels whose sums are contiguous

// The contribution of some pixels of one row of y to the weight gradient of a convolution whose
// input has few channels: for each tap, input channel and output channel, the sum over the pixels
// of x times dy. The taps of one line of a window are contiguous in x.
struct FewChannelsGradient {
  // For each line of the windows the first pixel's, or null if the line is outside the image.
  const float* const* lines = nullptr;
  const float* dy = nullptr;
  std::int64_t dy_pixel = 0, dy_block = 0;  // floats to the next pixel, and block of 16 channels
  std::int64_t pixels = 0, outs = 0;        // outs: a multiple of 16
  std::int64_t kernel_h = 0, line = 0;      // lines of a window, and floats of a line
  std::int64_t step = 0;                    // floats from one window to the next
  float* sums = nullptr;                    // [outs/16][kernel_h][line][16], added to
};

}  // namespace cnn::layers::cpu
