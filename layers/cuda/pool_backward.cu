#include "layers/cuda/own_kernel.h"
#include "layers/cuda/pool_parts.cuh"
#include "layers/cuda/rows.h"
#include "layers/cuda/tile.cuh"
#include "layers/cuda/vector.cuh"
#include "layers/pool.h"

// Gradients of max and average pooling. Each thread gathers the gradient of one pixel from all
// outputs whose windows cover it, in a fixed order: unlike a scatter, this needs no atomics and is
// deterministic. Memory traffic is minimal: dx is written once, and dy and the indices are read
// once from memory; overlapping windows read them again from the caches.
namespace cnn::layers::cuda {

namespace {

// The rows and columns of the outputs whose windows cover a thread's pixel.
struct OutputSpans {
  __device__ OutputSpans(const PoolPosition& at, const PoolSizes& sizes)
      : rows(covering(at.row, sizes.stride_h, sizes.pad_top, sizes.kernel_h, sizes.out_height)),
        columns(
            covering(at.column, sizes.stride_w, sizes.pad_left, sizes.kernel_w, sizes.out_width)) {}
  Span rows, columns;
};

template <class T, int width>
struct GradientAndIndex {
  Pack<T, width> gradient;
  Pack<std::uint8_t, width> tap;
};

template <class T, int width>
__global__ void __launch_bounds__(pool_threads)
    max_pool_gradient(const T* dy, const std::uint8_t* indices, T* dx, PoolSizes sizes) {
  const PoolPosition at(sizes, sizes.height, sizes.width, width);
  if (!at.exists) {
    return;
  }
  const OutputSpans outputs(at, sizes);
  float sum[width] = {};
  each_tap(
      outputs.rows, outputs.columns,
      [&](int p, int q) {
        const std::int64_t line = std::int64_t{at.n} * sizes.out_height + p;
        const auto from = [&](int pitch) {
          return pixel_at(line, sizes.out_width, q, pitch) + at.channel;
        };
        return GradientAndIndex<T, width>{fetch<width>(dy + from(sizes.out_pitch)),
                                          fetch<width>(indices + from(sizes.channels))};
      },
      [&](int p, int q, const GradientAndIndex<T, width>& result) {
        const int tap = (at.row + sizes.pad_top - p * sizes.stride_h) * sizes.kernel_w + at.column +
                        sizes.pad_left - q * sizes.stride_w;
        float value[width];
        widen(result.gradient, value);
#pragma unroll
        for (int i = 0; i < width; ++i) {
          sum[i] += result.tap.element[i] == tap ? value[i] : 0;
        }
      });
  const std::int64_t line = std::int64_t{at.n} * sizes.height + at.row;
  store<width>(dx + pixel_at(line, sizes.width, at.column, sizes.channels) + at.channel, sum);
}

// The minimum of resident blocks per multiprocessor in __launch_bounds__. The divisions call a
// subroutine; without a bound the compiler targets five resident blocks and spills registers around
// these calls. Four leave enough registers.
constexpr int average_resident_blocks = 4;

template <class T, int width>
__global__ void __launch_bounds__(pool_threads, average_resident_blocks)
    average_pool_gradient(const T* dy, T* dx, PoolSizes sizes) {
  const PoolPosition at(sizes, sizes.height, sizes.width, width);
  if (!at.exists) {
    return;
  }
  const OutputSpans outputs(at, sizes);
  float sum[width] = {};
  each_tap(
      outputs.rows, outputs.columns,
      [&](int p, int q) {
        const std::int64_t line = std::int64_t{at.n} * sizes.out_height + p;
        return fetch<width>(dy + pixel_at(line, sizes.out_width, q, sizes.out_pitch) + at.channel);
      },
      [&](int p, int q, const Pack<T, width>& pack) {
        const Span high = covered(p, sizes.stride_h, sizes.pad_top, sizes.kernel_h, sizes.height);
        const Span wide = covered(q, sizes.stride_w, sizes.pad_left, sizes.kernel_w, sizes.width);
        const auto count = static_cast<float>((high.end - high.begin) * (wide.end - wide.begin));
        float value[width];
        widen(pack, value);
#pragma unroll
        for (int i = 0; i < width; ++i) {
          sum[i] += value[i] / count;
        }
      });
  const std::int64_t line = std::int64_t{at.n} * sizes.height + at.row;
  store<width>(dx + pixel_at(line, sizes.width, at.column, sizes.channels) + at.channel, sum);
}

// in: dy, indices. out: dx.
void run_max(Stream& stream, const Operands& operands, const Window& window) {
  const TensorDesc& dx = operands.out[0].desc;
  const PoolSizes sizes = pool_sizes(window, dx.shape, operands.in[0].desc);
  const int lanes = width_for(sizes.channels, dx.type);
  with_type_and_width(dx.type, lanes, [&](auto tag, auto width) {
    using T = typename decltype(tag)::Type;
    cnn::cuda::launch(max_pool_gradient<T, decltype(width)::value>, pool_grid(dx, lanes),
                      dim3(pool_threads), 0, stream, data_of<T>(operands.in[0]),
                      data_of<std::uint8_t>(operands.in[1]), data_of<T>(operands.out[0]), sizes);
  });
}

// in: dy. out: dx.
void run_average(Stream& stream, const Operands& operands, const Window& window) {
  const TensorDesc& dx = operands.out[0].desc;
  const PoolSizes sizes = pool_sizes(window, dx.shape, operands.in[0].desc);
  const int lanes = width_for(sizes.channels, dx.type);
  with_type_and_width(dx.type, lanes, [&](auto tag, auto width) {
    using T = typename decltype(tag)::Type;
    cnn::cuda::launch(average_pool_gradient<T, decltype(width)::value>, pool_grid(dx, lanes),
                      dim3(pool_threads), 0, stream, data_of<T>(operands.in[0]),
                      data_of<T>(operands.out[0]), sizes);
  });
}

}  // namespace

void add_pool_backward_rows(KernelTable& table) {
  add_pool_row<MaxPoolBackward>(table, Pitched::first_input, run_max);
  add_pool_row<AveragePoolBackward>(table, Pitched::first_input, run_average);
}

}  // namespace cnn::layers::cuda
