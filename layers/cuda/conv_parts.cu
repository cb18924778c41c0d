#include <algorithm>

#include "layers/cuda/conv_parts.h"
#include "layers/cuda/own_kernel.h"
#include "layers/cuda/vector.cuh"

namespace cnn::layers::cuda {

namespace {

constexpr int threads = 256;

__device__ std::int64_t thread_of_grid() {
  return std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
}

dim3 grid_for(std::int64_t work) { return dim3(launch_count(divide_up(work, threads))); }

// One thread for each row. Bits are only moved, so one type stands for all of 16 bits.
template <int padded>
__global__ void __launch_bounds__(threads)
    pad(const std::uint16_t* from, std::uint16_t* to, std::int64_t rows, int channels) {
  const std::int64_t row = thread_of_grid();
  if (row >= rows) {
    return;
  }
  Pack<std::uint16_t, padded> out;
#pragma unroll
  for (int c = 0; c < padded; ++c) {
    out.element[c] = c < channels ? from[row * channels + c] : std::uint16_t{0};
  }
  *reinterpret_cast<Pack<std::uint16_t, padded>*>(to + row * padded) = out;
}

// One thread for `width` neighbours; width > 1 only where nothing is left out.
template <class T, int width>
__global__ void __launch_bounds__(threads)
    widen(const T* from, float* to, std::int64_t count, int channels, int padded) {
  const std::int64_t first = thread_of_grid() * width;
  if (first >= count) {
    return;
  }
  const std::int64_t at = width > 1 ? first : first / channels * padded + first % channels;
  float values[width];
  load<width>(from + at, values);
  store<width>(to + first, values);
}

// How a block goes over rows: `lanes` threads side by side on the packs of a row, or on as many of
// them as there are threads, and below each other as many rows as fit.
struct RowTile {
  int lanes = 0, depth = 0;
};
constexpr RowTile row_tile(int packs) {
  const int lanes = packs < threads ? packs : threads;
  return {lanes, threads / lanes};
}

constexpr std::int64_t rows_per_chunk = 512;
constexpr std::int64_t max_chunks = 1024;  // enough blocks for every device

std::int64_t chunks_of(std::int64_t rows) {
  return std::clamp<std::int64_t>(divide_up(rows, rows_per_chunk), 1, max_chunks);
}

// partial[chunk][c]: blockIdx.y is the chunk, a range of rows; blockIdx.x a range of packs.
template <class T, int width>
__global__ void __launch_bounds__(threads)
    sum_chunks(const T* from, std::int64_t pitch, float* partial, std::int64_t rows, int columns,
               RowTile tile) {
  const cnn::cuda::Shared<float> shared(0, threads * width);
  const int lane = static_cast<int>(threadIdx.x) % tile.lanes;
  const int line = static_cast<int>(threadIdx.x) / tile.lanes;
  const int column = (static_cast<int>(blockIdx.x) * tile.lanes + lane) * width;
  const bool active = line < tile.depth && column < columns;
  const std::int64_t chunk = (rows + gridDim.y - 1) / gridDim.y;
  const std::int64_t begin = chunk * blockIdx.y;
  const std::int64_t end = begin + chunk < rows ? begin + chunk : rows;
  float sums[width] = {};
  for (std::int64_t row = begin + line; active && row < end; row += tile.depth) {
    float values[width];
    load<width>(from + row * pitch + column, values);
#pragma unroll
    for (int i = 0; i < width; ++i) {
      sums[i] += values[i];
    }
  }
#pragma unroll
  for (int i = 0; i < width; ++i) {
    shared[static_cast<int>(threadIdx.x) * width + i] = sums[i];
  }
  __syncthreads();
  if (!active || line > 0) {
    return;
  }
  for (int other = 1; other < tile.depth; ++other) {
#pragma unroll
    for (int i = 0; i < width; ++i) {
      sums[i] += shared[(other * tile.lanes + lane) * width + i];
    }
  }
  store<width>(partial + std::int64_t{blockIdx.y} * columns + column, sums);
}

__global__ void __launch_bounds__(threads)
    add_chunks(const float* partial, float* sums, int chunks, int columns) {
  const std::int64_t column = thread_of_grid();
  if (column >= columns) {
    return;
  }
  double sum = 0;
  for (int chunk = 0; chunk < chunks; ++chunk) {
    sum += partial[std::int64_t{chunk} * columns + column];
  }
  sums[column] = static_cast<float>(sum);
}

template <class T, int width>
__global__ void __launch_bounds__(threads)
    add_and_clip(T* y, std::int64_t pitch, const float* bias, const T* residual, bool relu,
                 std::int64_t count, int channels) {
  const std::int64_t first = thread_of_grid() * width;
  if (first >= count) {
    return;
  }
  const std::int64_t row = first / channels;
  const int channel = static_cast<int>(first - row * channels);
  T* const at = y + row * pitch + channel;
  float values[width];
  load<width>(at, values);
  float others[width] = {};
  if (residual != nullptr) {
    load<width>(residual + first, others);
  }
#pragma unroll
  for (int i = 0; i < width; ++i) {
    const float sum = values[i] + (bias != nullptr ? bias[channel + i] : 0.0F) + others[i];
    values[i] = relu && sum < 0 ? 0.0F : sum;  // NaN stays
  }
  store<width>(at, values);
}

template <class T, int width>
void launch_sum(Stream& stream, const SumRows& s) {
  const int packs = s.columns / width;
  const RowTile tile = row_tile(packs);
  const std::int64_t chunks = chunks_of(s.rows);
  const dim3 grid(launch_count(divide_up(packs, tile.lanes)), launch_count(chunks));
  cnn::cuda::launch(sum_chunks<T, width>, grid, dim3(threads), threads * width * sizeof(float),
                    stream, reinterpret_cast<const T*>(s.from), s.pitch, s.partial, s.rows,
                    s.columns, tile);
  cnn::cuda::launch(add_chunks, grid_for(s.columns), dim3(threads), 0, stream, s.partial, s.sums,
                    static_cast<int>(chunks), s.columns);
}

template <class T, int width>
void launch_epilogue(Stream& stream, const Epilogue& e) {
  const std::int64_t count = e.rows * e.channels;
  cnn::cuda::launch(add_and_clip<T, width>, grid_for(count / width), dim3(threads), 0, stream,
                    reinterpret_cast<T*>(e.y), e.pitch, e.bias,
                    reinterpret_cast<const T*>(e.residual), e.relu, count, e.channels);
}

template <class T, int width>
void launch_widen(Stream& stream, const WidenRows& w) {
  const std::int64_t count = w.rows * w.channels;
  cnn::cuda::launch(widen<T, width>, grid_for(count / width), dim3(threads), 0, stream,
                    reinterpret_cast<const T*>(w.from), w.to, count, w.channels, w.padded);
}

}  // namespace

void pad_rows(Stream& stream, const PadRows& p) {
  check(p.padded == 4 || p.padded == 8,
        "rows are padded to 4 or 8 channels, not " + std::to_string(p.padded));
  cnn::cuda::launch(p.padded == 4 ? pad<4> : pad<8>, grid_for(p.rows), dim3(threads), 0, stream,
                    reinterpret_cast<const std::uint16_t*>(p.from),
                    reinterpret_cast<std::uint16_t*>(p.to), p.rows, p.channels);
}

void widen_rows(Stream& stream, const WidenRows& w) {
  with_type(w.type, [&](auto tag) {
    using T = typename decltype(tag)::Type;
    constexpr int width = 4;
    const bool whole = w.channels == w.padded && w.rows * w.channels % width == 0;
    whole ? launch_widen<T, width>(stream, w) : launch_widen<T, 1>(stream, w);
  });
}

std::size_t sum_rows_workspace(std::int64_t rows, int columns) {
  return static_cast<std::size_t>(chunks_of(rows) * columns) * sizeof(float);
}

void sum_rows(Stream& stream, const SumRows& s) {
  with_type(s.type, [&](auto tag) {
    using T = typename decltype(tag)::Type;
    constexpr int width = 4;  // wider ones gain nothing in loads and lose in registers
    s.columns % width == 0 ? launch_sum<T, width>(stream, s) : launch_sum<T, 1>(stream, s);
  });
}

void run_epilogue(Stream& stream, const Epilogue& e) {
  with_type(e.type, [&](auto tag) {
    using T = typename decltype(tag)::Type;
    constexpr int width = full_width<T>;
    e.channels % width == 0 ? launch_epilogue<T, width>(stream, e)
                            : launch_epilogue<T, 1>(stream, e);
  });
}

}  // namespace cnn::layers::cuda
