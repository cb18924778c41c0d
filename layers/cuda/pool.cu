#include "layers/cuda/own_kernel.h"
#include "layers/cuda/pool_parts.cuh"
#include "layers/cuda/rows.h"
#include "layers/cuda/tile.cuh"
#include "layers/cuda/vector.cuh"
#include "layers/pool.h"

// Bytes: the result (and one byte of index for each of its elements) is written once. The image is
// read once from memory; where windows overlap the other reads hit the caches, since neighbouring
// outputs are neighbouring threads.
namespace cnn::layers::cuda {

namespace {

// The pixels that a thread's window covers.
struct WindowSpans {
  __device__ WindowSpans(const PoolPosition& at, const PoolSizes& sizes)
      : rows(covered(at.row, sizes.stride_h, sizes.pad_top, sizes.kernel_h, sizes.height)),
        columns(covered(at.column, sizes.stride_w, sizes.pad_left, sizes.kernel_w, sizes.width)) {}
  Span rows, columns;
};

template <class T, int width>
__global__ void __launch_bounds__(pool_threads)
    max_pool(const T* x, T* y, std::uint8_t* indices, PoolSizes sizes) {
  const PoolPosition at(sizes, sizes.out_height, sizes.out_width, width);
  if (!at.exists) {
    return;
  }
  const int top = at.row * sizes.stride_h - sizes.pad_top;
  const int left = at.column * sizes.stride_w - sizes.pad_left;
  const WindowSpans window(at, sizes);
  float best[width] = {};
  int best_tap[width] = {};
  bool first = true;
  each_tap(
      window.rows, window.columns,
      [&](int h, int w) {
        const std::int64_t line = std::int64_t{at.n} * sizes.height + h;
        return fetch<width>(x + pixel_at(line, sizes.width, w, sizes.channels) + at.channel);
      },
      [&](int h, int w, const Pack<T, width>& pack) {
        const int tap = (h - top) * sizes.kernel_w + (w - left);
        float value[width];
        widen(pack, value);
#pragma unroll
        for (int i = 0; i < width; ++i) {
          // The first NaN wins and stays.
          const bool wins = first || (!(value[i] <= best[i]) && best[i] == best[i]);
          best[i] = wins ? value[i] : best[i];
          best_tap[i] = wins ? tap : best_tap[i];
        }
        first = false;
      });
  const std::int64_t line = std::int64_t{at.n} * sizes.out_height + at.row;
  store<width>(y + pixel_at(line, sizes.out_width, at.column, sizes.out_pitch) + at.channel, best);
  if (indices != nullptr) {
    Pack<std::uint8_t, width> taps;
#pragma unroll
    for (int i = 0; i < width; ++i) {
      taps.element[i] = static_cast<std::uint8_t>(best_tap[i]);
    }
    const std::int64_t to = pixel_at(line, sizes.out_width, at.column, sizes.channels) + at.channel;
    *reinterpret_cast<Pack<std::uint8_t, width>*>(indices + to) = taps;
  }
}

template <class T, int width>
__global__ void __launch_bounds__(pool_threads) average_pool(const T* x, T* y, PoolSizes sizes) {
  const PoolPosition at(sizes, sizes.out_height, sizes.out_width, width);
  if (!at.exists) {
    return;
  }
  const WindowSpans window(at, sizes);
  float sum[width] = {};
  each_tap(
      window.rows, window.columns,
      [&](int h, int w) {
        const std::int64_t line = std::int64_t{at.n} * sizes.height + h;
        return fetch<width>(x + pixel_at(line, sizes.width, w, sizes.channels) + at.channel);
      },
      [&](int /*h*/, int /*w*/, const Pack<T, width>& pack) {
        float value[width];
        widen(pack, value);
#pragma unroll
        for (int i = 0; i < width; ++i) {
          sum[i] += value[i];
        }
      });
  const int count =
      (window.rows.end - window.rows.begin) * (window.columns.end - window.columns.begin);
#pragma unroll
  for (int i = 0; i < width; ++i) {
    sum[i] /= static_cast<float>(count);
  }
  const std::int64_t line = std::int64_t{at.n} * sizes.out_height + at.row;
  store<width>(y + pixel_at(line, sizes.out_width, at.column, sizes.out_pitch) + at.channel, sum);
}

// in: x. out: y, [indices].
void run_max(Stream& stream, const Operands& operands, const Window& window) {
  const TensorDesc& y = operands.out[0].desc;
  const PoolSizes sizes = pool_sizes(window, operands.in[0].desc.shape, y);
  const int lanes = width_for(sizes.channels, y.type);
  with_type_and_width(y.type, lanes, [&](auto tag, auto width) {
    using T = typename decltype(tag)::Type;
    cnn::cuda::launch(max_pool<T, decltype(width)::value>, pool_grid(y, lanes), dim3(pool_threads),
                      0, stream, data_of<T>(operands.in[0]), data_of<T>(operands.out[0]),
                      operands.out.size() > 1 ? data_of<std::uint8_t>(operands.out[1]) : nullptr,
                      sizes);
  });
}

void run_average(Stream& stream, const Operands& operands, const Window& window) {
  const TensorDesc& y = operands.out[0].desc;
  const PoolSizes sizes = pool_sizes(window, operands.in[0].desc.shape, y);
  const int lanes = width_for(sizes.channels, y.type);
  with_type_and_width(y.type, lanes, [&](auto tag, auto width) {
    using T = typename decltype(tag)::Type;
    cnn::cuda::launch(average_pool<T, decltype(width)::value>, pool_grid(y, lanes),
                      dim3(pool_threads), 0, stream, data_of<T>(operands.in[0]),
                      data_of<T>(operands.out[0]), sizes);
  });
}

}  // namespace

void add_pool_rows(KernelTable& table) {
  add_pool_row<MaxPool>(table, Pitched::first_output, run_max);
  add_pool_row<AveragePool>(table, Pitched::first_output, run_average);
}

}  // namespace cnn::layers::cuda
