#pragma once

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "layers/cuda/gate.cuh"
#include "layers/cuda/own_kernel.h"
#include "layers/cuda/vector.cuh"
#include "runtime/cuda/launch.h"

// Tiling of an nhwc image, seen as a matrix of pixels (rows) x channels, for kernels that treat
// each channel separately, and the deterministic two-pass reductions by channel over such tiles.
namespace cnn::layers::cuda {

inline constexpr int tile_threads = 256;

// A launch configuration for such a matrix. blockIdx.x selects a group of channels and blockIdx.y a
// chunk of rows; threadIdx.x selects `width` neighbouring channels and threadIdx.y a line. A thread
// keeps its channels and processes every lines()-th row of the chunk, so that coefficients and sums
// of its channels stay in registers. The tile depends only on the shape, the kernel and the device
// model, so that partial sums are the same in every run.
struct Tile {
  std::int64_t rows = 0;
  int channels = 0;
  int width = 1;            // channels per thread
  int columns = 1;          // blockDim.x, a power of two up to the warp size
  int column_groups = 1;    // gridDim.x
  int chunks = 1;           // gridDim.y
  std::int64_t height = 0;  // rows per chunk; the last chunk may have fewer

  // Returns blockDim.y.
  __host__ __device__ int lines() const { return tile_threads / columns; }
  __host__ __device__ std::int64_t first_row(int chunk) const { return chunk * height; }
  __host__ __device__ std::int64_t end_row(int chunk) const {
    const std::int64_t end = (chunk + 1) * height;
    return end < rows ? end : rows;
  }
  // Returns the element index of the calling thread's first channel in a row of a contiguous image.
  __device__ std::int64_t at(std::int64_t row) const { return row * channels + channel(); }
  // Returns the same for an image with `pitch` elements from one pixel to the next.
  __device__ std::int64_t at(std::int64_t row, std::int64_t pitch) const {
    return row * pitch + channel();
  }
  // Returns the index of the mask byte with these channels. Requires an image that has_mask().
  __device__ std::int64_t mask_at(std::int64_t row) const { return at(row) / mask_width; }
  // Returns the first channel of the calling thread, at least `channels` for a thread without work.
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

// The loads that each thread keeps in flight: one load of 16 bytes per thread would not saturate
// the memory bandwidth.
inline constexpr int rows_in_flight = 4;

// Returns the number of elements of the widest access that keeps the channels of every pixel
// aligned: those of 16 bytes, else 4, else 1.
inline int width_for(std::int64_t channels, DataType type) {
  const int full = static_cast<int>(16 / size_of(type));
  return channels % full == 0 ? full : channels % 4 == 0 ? 4 : 1;
}

// Returns a tile that divides the channels among blocks; all rows form one chunk.
inline Tile columns_of(std::int64_t rows, std::int64_t channels, DataType type) {
  Tile tile{.rows = rows,
            .channels = static_cast<int>(channels),
            .width = width_for(channels, type),
            .height = rows};
  const std::int64_t vectors = channels / tile.width;
  // Chooses the widest block that has no more idle threads than any narrower one.
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

// Returns the tile with its rows divided into chunks so that the grid is one wave, that is at most
// `resident_blocks` blocks: a partial second wave would leave most multiprocessors idle. Chunks
// have at least four rows per thread, because the block reduction would otherwise take longer than
// the loads.
inline Tile in_one_wave(Tile tile, std::int64_t resident_blocks) {
  constexpr std::int64_t rows_per_thread = 4;
  const std::int64_t most = divide_up(tile.rows, tile.lines() * rows_per_thread);
  const std::int64_t chunks =
      std::clamp<std::int64_t>(resident_blocks / tile.column_groups, 1, most);
  tile.height = divide_up(tile.rows, chunks);
  tile.chunks = static_cast<int>(divide_up(tile.rows, tile.height));
  return tile;
}

// Returns the same for a kernel that uses no dynamic shared memory.
template <class... Parameters>
Tile in_one_wave(const Tile& tile, void (*kernel)(Parameters...)) {
  return in_one_wave(tile, cnn::cuda::max_resident_blocks(kernel, tile_threads, 0));
}

// Returns whether kernels can access the ReLU mask of such an image: whether all of its bytes are
// full, so that each belongs to one thread, or for f32 to two neighbours.
inline bool has_mask(const TensorDesc& image) { return image.shape[1] % mask_width == 0; }

// Dispatches to a template instance: calls function(TypeTag<T>, std::integral_constant<int, width>)
// with the C++ type of a floating-point DataType and a width that width_for() returned for it.
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

// The dynamic shared memory that sum_lines() of `count` values needs, in bytes.
template <class Number>
constexpr std::size_t sum_lines_bytes(int count) {
  return static_cast<std::size_t>(count) * tile_threads * sizeof(Number);
}

// Returns the one-wave tile of an image for the kernel that kernel_of(TypeTag<T>,
// std::integral_constant<int, width>) returns and that keeps two sums per channel. The number of
// chunks, and with it the workspace of the partial sums, is thus known when the kernel is
// described.
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

// Dispatches on the presence of a mask: calls function(std::bool_constant<masked>), which is true
// only for the full width, which images that has_mask() have. Kernels without a mask are separate
// instances, because computing the mask costs registers.
template <class T, int width, class Function>
void with_mask(bool masked, const Function& function) {
  if constexpr (width == full_width<T>) {
    if (masked) {
      function(std::true_type{});
      return;
    }
  }
  function(std::false_type{});
}

// Block reduction over threadIdx.y: sums `values` over the lines of a block of tile_threads threads
// in a binary tree; the threads of line 0 receive the sums. Every thread of the block must call it.
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

// The second pass of a reduction, over chunks: blocks of 8 channels, whose floats are one 32-byte
// memory sector, and 32 lines.
inline constexpr int finish_columns = 8;
inline dim3 finish_block() { return dim3(finish_columns, tile_threads / finish_columns); }
inline dim3 finish_grid(const Tile& tile) {
  return dim3(static_cast<unsigned>(divide_up(tile.channels, finish_columns)));
}

// Partial sums of the first pass, two for each chunk and channel, as [chunk][2][channels].
inline constexpr int pair_planes = 2;
// Returns the number of floats of these partial sums.
inline std::int64_t pair_floats(const Tile& tile) {
  return std::int64_t{tile.chunks} * pair_planes * tile.channels;
}

// Stores the block's two sums of each of `width` channels from `channel` on. The threads of line 0
// call it after sum_lines().
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

// Adds the pairs of one channel over every blockDim.y-th chunk, in double; sum_lines() then adds
// the lines.
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
