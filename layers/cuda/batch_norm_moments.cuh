#pragma once

#include <cstdint>

#include "layers/cuda/own_kernel.h"
#include "layers/cuda/tile.cuh"
#include "layers/cuda/vector.cuh"

// The moments of each channel of an nhwc image, by a deterministic two-pass reduction. The partial
// sums take 12 bytes per channel and chunk, less than 4 MB in total.
namespace cnn::layers::cuda {

// Partial sums of shifted data, [chunk][3][channels]. With k the first value of the channel in the
// chunk they are k, sum (x - k) and sum (x - k)^2. Shifting by a value of the data avoids the
// catastrophic cancellation of sum x^2 - (sum x)^2 / n for a large mean.
constexpr int moment_planes = 3;

// First pass: writes the partial sums of every chunk.

template <class T, int width>
__global__ void __launch_bounds__(tile_threads)
    chunk_moments(const T* x, Tile tile, float* partials) {
  const int channel = tile.channel();
  const int chunk = static_cast<int>(blockIdx.y);
  const bool active = channel < tile.channels;
  float origin[width] = {};
  float sums[2 * width] = {};  // of the differences x - k, then of their squares
  if (active) {
    const std::int64_t first = tile.first_row(chunk);
    const std::int64_t end = tile.end_row(chunk);
    load<width>(x + tile.at(first), origin);
    const int lines = static_cast<int>(blockDim.y);
    for (std::int64_t row = first + threadIdx.y; row < end; row += rows_in_flight * lines) {
      Pack<T, width> packs[rows_in_flight];
#pragma unroll
      for (int k = 0; k < rows_in_flight; ++k) {
        packs[k] = fetch<width>(x + tile.at(row + k * lines < end ? row + k * lines : first));
      }
#pragma unroll
      for (int k = 0; k < rows_in_flight; ++k) {
        float value[width];
        widen(packs[k], value);
#pragma unroll
        for (int i = 0; i < width; ++i) {
          // Rows past the end of the chunk were replaced by its first row, which adds zero.
          const float difference = value[i] - origin[i];
          sums[i] += difference;
          sums[width + i] = fmaf(difference, difference, sums[width + i]);
        }
      }
    }
  }
  sum_lines(sums);
  if (active && threadIdx.y == 0) {
    float* const to = partials + static_cast<std::int64_t>(chunk) * moment_planes * tile.channels;
#pragma unroll
    for (int i = 0; i < width; ++i) {
      to[channel + i] = origin[i];
      to[tile.channels + channel + i] = sums[i];
      to[2 * tile.channels + channel + i] = sums[width + i];
    }
  }
}

// Second pass: combines the chunks in double. It shifts the sums of a chunk of n rows from their
// own k to that of chunk 0: with d the difference of the two, they become sum (x - k) + n d and sum
// (x - k)^2 + 2 d sum (x - k) + n d^2. Calls write(channel, mean, sum (x - mean)^2, rows) once for
// each channel.
template <class Write>
__global__ void __launch_bounds__(tile_threads)
    finish_moments(const float* partials, Tile tile, Write write) {
  const int channel = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  const bool active = channel < tile.channels;
  double sums[2] = {};
  const double origin = active ? partials[channel] : 0;
  if (active) {
#pragma unroll 4
    for (int chunk = static_cast<int>(threadIdx.y); chunk < tile.chunks;
         chunk += static_cast<int>(blockDim.y)) {
      const float* const from =
          partials + static_cast<std::int64_t>(chunk) * moment_planes * tile.channels + channel;
      const double distance = from[0] - origin;
      const double sum = from[tile.channels];
      const auto count = static_cast<double>(tile.end_row(chunk) - tile.first_row(chunk));
      sums[0] += sum + count * distance;
      sums[1] += from[2 * tile.channels] + distance * (2 * sum + count * distance);
    }
  }
  sum_lines(sums);
  if (active && threadIdx.y == 0) {
    const auto count = static_cast<double>(tile.rows);
    const double shifted = sums[0] / count;
    const double squares = sums[1] - count * shifted * shifted;
    write(channel, origin + shifted, squares < 0 ? 0 : squares, count);  // rounding may yield < 0
  }
}

// Returns the tile of both passes for an image.
inline Tile moments_tile_of(const TensorDesc& x) {
  return sums_tile_of(x, [](auto tag, auto width) {
    return chunk_moments<typename decltype(tag)::Type, decltype(width)::value>;
  });
}

inline std::int64_t moment_floats(const Tile& tile) {
  return std::int64_t{tile.chunks} * moment_planes * tile.channels;
}

// Returns the bytes of the partial sums.
inline std::size_t moments_workspace(const Tile& tile) {
  BumpAllocator allocator;
  allocator.take<float>(moment_floats(tile));
  return allocator.bytes();
}

// Enqueues both passes over operand 0, with the partial sums at the start of the workspace.
template <class Write>
void launch_moments(const Operands& operands, const Tile& tile, Write write, Stream& stream) {
  BumpAllocator allocator(operands.workspace);
  float* const partials = allocator.take<float>(moment_floats(tile));
  with_type_and_width(operands.in[0].desc.type, tile.width, [&](auto tag, auto width) {
    using T = typename decltype(tag)::Type;
    constexpr int lanes = decltype(width)::value;
    cnn::cuda::launch(chunk_moments<T, lanes>, tile.grid(), tile.block(),
                      sum_lines_bytes<float>(2 * lanes), stream, data_of<const T>(operands.in[0]),
                      tile, partials);
  });
  cnn::cuda::launch(finish_moments<Write>, finish_grid(tile), finish_block(),
                    sum_lines_bytes<double>(2), stream, partials, tile, write);
}

}  // namespace cnn::layers::cuda
