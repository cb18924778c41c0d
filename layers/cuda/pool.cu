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

template <class T, int width>
__global__ void __launch_bounds__(pool_threads)
    max_pool(const T* x, T* y, std::uint8_t* indices, PoolSizes sizes) {
  const PoolPlace at(sizes, sizes.out_height, sizes.out_width, width);
  if (!at.exists) {
    return;
  }
  const Span rows = covered(at.row, sizes.stride_h, sizes.pad_top, sizes.kernel_h, sizes.height);
  const Span columns =
      covered(at.column, sizes.stride_w, sizes.pad_left, sizes.kernel_w, sizes.width);
  const int top = at.row * sizes.stride_h - sizes.pad_top;
  const int left = at.column * sizes.stride_w - sizes.pad_left;
  float best[width] = {};
  int best_tap[width] = {};
  bool first = true;
  for (int h = rows.begin; h < rows.end; ++h) {
    const T* const line =
        x + pixel_at(std::int64_t{at.n} * sizes.height + h, sizes.width, 0, sizes) + at.channel;
    for (int w = columns.begin; w < columns.end; w += taps_in_flight) {
      Pack<T, width> packs[taps_in_flight];
#pragma unroll
      for (int k = 0; k < taps_in_flight; ++k) {
        const int column = w + k < columns.end ? w + k : w;
        packs[k] = fetch<width>(line + std::int64_t{column} * sizes.channels);
      }
#pragma unroll
      for (int k = 0; k < taps_in_flight; ++k) {
        // Past the end stands the first pack once more, which does not exceed what it gave.
        const int tap = (h - top) * sizes.kernel_w + (w + k - left);
        float value[width];
        widen(packs[k], value);
#pragma unroll
        for (int i = 0; i < width; ++i) {
          const bool wins = first || value[i] > best[i];
          best[i] = wins ? value[i] : best[i];
          best_tap[i] = wins ? tap : best_tap[i];
        }
        first = false;
      }
    }
  }
  const std::int64_t to =
      pixel_at(std::int64_t{at.n} * sizes.out_height + at.row, sizes.out_width, at.column, sizes) +
      at.channel;
  store<width>(y + to, best);
  if (indices != nullptr) {
    Pack<std::uint8_t, width> taps;
#pragma unroll
    for (int i = 0; i < width; ++i) {
      taps.element[i] = static_cast<std::uint8_t>(best_tap[i]);
    }
    *reinterpret_cast<Pack<std::uint8_t, width>*>(indices + to) = taps;
  }
}

template <class T, int width>
__global__ void __launch_bounds__(pool_threads) average_pool(const T* x, T* y, PoolSizes sizes) {
  const PoolPlace at(sizes, sizes.out_height, sizes.out_width, width);
  if (!at.exists) {
    return;
  }
  const Span rows = covered(at.row, sizes.stride_h, sizes.pad_top, sizes.kernel_h, sizes.height);
  const Span columns =
      covered(at.column, sizes.stride_w, sizes.pad_left, sizes.kernel_w, sizes.width);
  float sum[width] = {};
  for (int h = rows.begin; h < rows.end; ++h) {
    const T* const line =
        x + pixel_at(std::int64_t{at.n} * sizes.height + h, sizes.width, 0, sizes) + at.channel;
    for (int w = columns.begin; w < columns.end; w += taps_in_flight) {
      Pack<T, width> packs[taps_in_flight];
#pragma unroll
      for (int k = 0; k < taps_in_flight; ++k) {
        const int column = w + k < columns.end ? w + k : w;
        packs[k] = fetch<width>(line + std::int64_t{column} * sizes.channels);
      }
#pragma unroll
      for (int k = 0; k < taps_in_flight; ++k) {
        float value[width];
        widen(packs[k], value);
#pragma unroll
        for (int i = 0; i < width; ++i) {
          sum[i] += w + k < columns.end ? value[i] : 0;
        }
      }
    }
  }
  const int count = (rows.end - rows.begin) * (columns.end - columns.begin);
#pragma unroll
  for (int i = 0; i < width; ++i) {
    sum[i] /= static_cast<float>(count);
  }
  const std::int64_t line = std::int64_t{at.n} * sizes.out_height + at.row;
  store<width>(y + pixel_at(line, sizes.out_width, at.column, sizes) + at.channel, sum);
}

// in: x. out: y, [indices].
void run_max(Stream& stream, const Operands& operands, const Window& window) {
  const TensorDesc& y = operands.out[0].desc;
  const PoolSizes sizes = pool_sizes(window, operands.in[0].desc.shape, y.shape);
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
  const PoolSizes sizes = pool_sizes(window, operands.in[0].desc.shape, y.shape);
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
  table.add<MaxPool>(
      [](const MaxPool& /*op*/, const Signature& asked) -> std::optional<KernelSpec> {
        return in_nhwc(asked);
      },
      [](const MaxPool& op, const Signature& /*s*/) {
        return own_kernel([window = op.window](Stream& stream, const Operands& operands) {
          run_max(stream, operands, window);
        });
      });
  table.add<AveragePool>(
      [](const AveragePool& /*op*/, const Signature& asked) -> std::optional<KernelSpec> {
        return in_nhwc(asked);
      },
      [](const AveragePool& op, const Signature& /*s*/) {
        return own_kernel([window = op.window](Stream& stream, const Operands& operands) {
          run_average(stream, operands, window);
        });
      });
}

}  // namespace cnn::layers::cuda
