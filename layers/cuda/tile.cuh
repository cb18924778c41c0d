#pragma once

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "layers/cuda/own_kernel.h"
#include "layers/cuda/vector.cuh"
#include "runtime/cuda/launch.h"

// An nhwc image as a matrix of pixels x channels, cut among blocks: how kernels that treat each
// channel by itself walk through memory.
namespace cnn::layers::cuda {

inline constexpr int tile_threads = 256;

// Channels in a byte of a gate mask. Kernels read and write masks only in tiles of this width:
// whole bytes, for threads would else have to share them.
inline constexpr int mask_width = 8;

// Blocks (x: group of channels, y: chunk of rows) of threads (x: `width` neighbouring channels,
// y: line). A thread keeps its channels and takes every lines-th row of its chunk, so what belongs
// to a channel stays in registers. Depends on the shape, the kernel and the kind of device alone:
// sums over chunks are deterministic.
struct Tile {
  std::int64_t rows = 0;
  int channels = 0;
  int width = 1;            // channels per thread
  int columns = 1;          // threads side by side, a power of two of at most a warp
  int column_groups = 1;    // blocks side by side
  int chunks = 1;           // blocks one below the other
  std::int64_t height = 0;  // rows of a chunk, the last one's may be fewer

  __host__ __device__ int lines() const { return tile_threads / columns; }
  __host__ __device__ std::int64_t first_row(int chunk) const { return chunk * height; }
  __host__ __device__ std::int64_t end_row(int chunk) const {
    const std::int64_t end = (chunk + 1) * height;
    return end < rows ? end : rows;
  }
  // Returns the index in a row of the first channel of the calling thread.
  __device__ std::int64_t at(std::int64_t row) const { return row * channels + channel(); }
  // As above, for an image with `pitch` elements between pixels.
  __device__ std::int64_t at(std::int64_t row, std::int64_t pitch) const {
    return row * pitch + channel();
  }
  // Returns the index of the mask byte of that element and its neighbours, in a tile of mask_width.
  __device__ std::int64_t mask_at(std::int64_t row) const { return at(row) / mask_width; }
  // The first channel of the calling thread; not below `channels` for threads with nothing to do.
  __device__ int channel() const {
    return static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x) * width;
  }
  dim3 grid() const {
    return dim3(static_cast<unsigned>(column_groups), static_cast<unsigned>(chunks));
  }
  dim3 block() const {
    return dim3(static_cast<unsigned>(columns), static_cast<unsigned>(lines()));
  }
};

// Rows that a thread reads before it works on them: 16 bytes for each thread at a time would not
// keep the memory busy.
inline constexpr int rows_in_flight = 4;

// Returns the elements of the widest access that the channels of a pixel allow: 16 bytes, 4
// elements or one.
inline int width_for(std::int64_t channels, DataType type) {
  const int full = static_cast<int>(16 / size_of(type));
  return channels % full == 0 ? full : channels % 4 == 0 ? 4 : 1;
}

// Returns a tile that cuts only the channels; all rows are one chunk.
inline Tile columns_of(std::int64_t rows, std::int64_t channels, DataType type) {
  Tile tile{.rows = rows,
            .channels = static_cast<int>(channels),
            .width = width_for(channels, type),
            .height = rows};
  const std::int64_t vectors = channels / tile.width;
  // The widest block without more idle threads than a narrower one.
  std::int64_t least = vectors + 32;
  for (int columns = 32; columns >= 4; columns /= 2) {
    const std::int64_t covered = divide_up(vectors, columns) * columns;
    if (covered < least) {
      least = covered;
      tile.columns = columns;
    }
  }
  tile.column_groups = static_cast<int>(divide_up(vectors, tile.columns));
  return tile;
}

inline Tile columns_of(const TensorDesc& image) {
  const Shape& s = image.shape;
  return columns_of(s[0] * s[2] * s[3], s[1], image.type);
}

// Cuts the rows of a tile into at most as many blocks as the device holds at once: those of a
// second wave would run mostly alone. A chunk of fewer than four rows per thread would spend more
// time on its sums than on reading.
inline Tile in_one_wave(Tile tile, std::int64_t resident_blocks) {
  constexpr std::int64_t rows_per_thread = 4;
  const std::int64_t most = divide_up(tile.rows, tile.lines() * rows_per_thread);
  const std::int64_t chunks =
      std::clamp<std::int64_t>(resident_blocks / tile.column_groups, 1, most);
  tile.height = divide_up(tile.rows, chunks);
  tile.chunks = static_cast<int>(divide_up(tile.rows, tile.height));
  return tile;
}

// For a kernel without sums.
template <class... Parameters>
Tile in_one_wave(const Tile& tile, void (*kernel)(Parameters...)) {
  return in_one_wave(tile, cnn::cuda::max_resident_blocks(kernel, tile_threads, 0));
}

// Returns whether the tile of such an image is as wide as a byte of its mask: a 16-bit type and a
// multiple of 8 channels.
inline bool has_mask_width(const TensorDesc& image) {
  return width_for(image.shape[1], image.type) == mask_width;
}

// Calls function(TypeTag<T>, std::integral_constant<int, width>) for a kernel of this width.
template <class Function>
void with_type_and_width(DataType type, int width, const Function& function) {
  with_type(type, [&](auto tag) {
    using T = typename decltype(tag)::Type;
    if (width == full_width<T>) {
      function(tag, std::integral_constant<int, full_width<T>>{});
    } else if (width == 4) {
      function(tag, std::integral_constant<int, 4>{});
    } else {
      function(tag, std::integral_constant<int, 1>{});
    }
  });
}

// Bytes of shared memory that sum_lines of `count` values takes.
template <class Number>
constexpr std::size_t sum_lines_bytes(int count) {
  return static_cast<std::size_t>(count) * tile_threads * sizeof(Number);
}

// The tile of an image for kernel_of(TypeTag<T>, std::integral_constant<int, width>), which keeps
// two sums for each channel of a thread: what its partial sums take of a workspace is known before
// it runs.
template <class KernelOf>
Tile sums_tile_of(const TensorDesc& image, const KernelOf& kernel_of) {
  Tile tile = columns_of(image);
  with_type_and_width(image.type, tile.width, [&](auto tag, auto width) {
    constexpr std::size_t shared_bytes = sum_lines_bytes<float>(2 * decltype(width)::value);
    tile = in_one_wave(
        tile, cnn::cuda::max_resident_blocks(kernel_of(tag, width), tile_threads, shared_bytes));
  });
  return tile;
}

// Calls function(std::bool_constant<masked>), true only for tiles of mask_width. Signs cost
// registers, which kernels that make no mask better keep.
template <int width, class Function>
void with_mask(bool masked, const Function& function) {
  if constexpr (width == mask_width) {
    if (masked) {
      function(std::true_type{});
      return;
    }
  }
  function(std::false_type{});
}

// Sums values over the lines of a block of tile_threads threads, in a fixed order; line 0 gets the
// sums. Every thread of the block must call it.
template <int count, class Number>
__device__ void sum_lines(Number (&values)[count]) {
  const cnn::cuda::Shared<Number> shared(0, count * tile_threads);
  const int thread = static_cast<int>(threadIdx.y * blockDim.x + threadIdx.x);
#pragma unroll
  for (int i = 0; i < count; ++i) {
    shared[i * tile_threads + thread] = values[i];
  }
  __syncthreads();
  for (int half = static_cast<int>(blockDim.y) / 2; half > 0; half /= 2) {
    if (static_cast<int>(threadIdx.y) < half) {
      const int other = thread + half * static_cast<int>(blockDim.x);
#pragma unroll
      for (int i = 0; i < count; ++i) {
        values[i] += shared[i * tile_threads + other];
        shared[i * tile_threads + thread] = values[i];
      }
    }
    __syncthreads();
  }
}

// Sums over chunks: blocks of 8 channels, one sector of memory, and 32 lines.
inline constexpr int finish_columns = 8;
inline dim3 finish_block() { return dim3(finish_columns, tile_threads / finish_columns); }
inline dim3 finish_grid(const Tile& tile) {
  return dim3(static_cast<unsigned>(divide_up(tile.channels, finish_columns)));
}

// Two sums of each chunk and channel, as [chunk][2][channels].
inline constexpr int pair_planes = 2;
inline std::int64_t pair_floats(const Tile& tile) {
  return std::int64_t{tile.chunks} * pair_planes * tile.channels;
}

// Keeps the block's two sums of `width` channels from `channel` on: line 0 has them.
template <int width>
__device__ void keep_pairs(const float (&sums)[2 * width], float* partials, const Tile& tile,
                           int chunk, int channel) {
  float* const to = partials + static_cast<std::int64_t>(chunk) * pair_planes * tile.channels;
#pragma unroll
  for (int i = 0; i < width; ++i) {
    to[channel + i] = sums[i];
    to[tile.channels + channel + i] = sums[width + i];
  }
}

// Adds up one channel's pairs of the chunks that fall to this line, in double.
__device__ inline void add_pairs(const float* partials, const Tile& tile, int channel,
                                 double (&sums)[2]) {
#pragma unroll 4
  for (int chunk = static_cast<int>(threadIdx.y); chunk < tile.chunks;
       chunk += static_cast<int>(blockDim.y)) {
    const float* const from =
        partials + static_cast<std::int64_t>(chunk) * pair_planes * tile.channels + channel;
    sums[0] += from[0];
    sums[1] += from[tile.channels];
  }
}

}  // namespace cnn::layers::cuda
