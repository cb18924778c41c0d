#include "layers/cuda/own_kernel.h"
#include "layers/cuda/pool_parts.cuh"
#include "layers/cuda/rows.h"
#include "layers/cuda/tile.cuh"
#include "layers/cuda/vector.cuh"
#include "layers/pool.h"

// Each pixel of dx gathers from the outputs whose windows cover it, in their order: no atomics, the
// same bits every time. Bytes: dx written once; dy (and the indices) read once from memory, again
// from the caches where windows overlap.
namespace cnn::layers::cuda {

namespace {

template <class T, int width>
__global__ void __launch_bounds__(pool_threads)
    max_pool_gradient(const T* dy, const std::uint8_t* indices, T* dx, PoolSizes sizes) {
  const PoolPlace at(sizes, sizes.height, sizes.width, width);
  if (!at.exists) {
    return;
  }
  const Span rows =
      covering(at.row, sizes.stride_h, sizes.pad_top, sizes.kernel_h, sizes.out_height);
  const Span columns =
      covering(at.column, sizes.stride_w, sizes.pad_left, sizes.kernel_w, sizes.out_width);
  float sum[width] = {};
  for (int p = rows.begin; p < rows.end; ++p) {
    const std::int64_t line = std::int64_t{at.n} * sizes.out_height + p;
    const int tap_row = at.row + sizes.pad_top - p * sizes.stride_h;
    for (int q = columns.begin; q < columns.end; q += taps_in_flight) {
      Pack<T, width> packs[taps_in_flight];
      Pack<std::uint8_t, width> taps[taps_in_flight];
#pragma unroll
      for (int k = 0; k < taps_in_flight; ++k) {
        const int column = q + k < columns.end ? q + k : q;
        const std::int64_t from = pixel_at(line, sizes.out_width, column, sizes) + at.channel;
        packs[k] = fetch<width>(dy + from);
        taps[k] = fetch<width>(indices + from);
      }
#pragma unroll
      for (int k = 0; k < taps_in_flight; ++k) {
        const int tap =
            tap_row * sizes.kernel_w + at.column + sizes.pad_left - (q + k) * sizes.stride_w;
        float value[width];
        widen(packs[k], value);
#pragma unroll
        for (int i = 0; i < width; ++i) {
          const bool chosen = q + k < columns.end && taps[k].element[i] == tap;
          sum[i] += chosen ? value[i] : 0;
        }
      }
    }
  }
  const std::int64_t line = std::int64_t{at.n} * sizes.height + at.row;
  store<width>(dx + pixel_at(line, sizes.width, at.column, sizes) + at.channel, sum);
}

template <class T, int width>
__global__ void __launch_bounds__(pool_threads)
    average_pool_gradient(const T* dy, T* dx, PoolSizes sizes) {
  const PoolPlace at(sizes, sizes.height, sizes.width, width);
  if (!at.exists) {
    return;
  }
  const Span rows =
      covering(at.row, sizes.stride_h, sizes.pad_top, sizes.kernel_h, sizes.out_height);
  const Span columns =
      covering(at.column, sizes.stride_w, sizes.pad_left, sizes.kernel_w, sizes.out_width);
  float sum[width] = {};
  for (int p = rows.begin; p < rows.end; ++p) {
    const std::int64_t line = std::int64_t{at.n} * sizes.out_height + p;
    const Span high = covered(p, sizes.stride_h, sizes.pad_top, sizes.kernel_h, sizes.height);
    for (int q = columns.begin; q < columns.end; q += taps_in_flight) {
      Pack<T, width> packs[taps_in_flight];
#pragma unroll
      for (int k = 0; k < taps_in_flight; ++k) {
        const int column = q + k < columns.end ? q + k : q;
        packs[k] = fetch<width>(dy + pixel_at(line, sizes.out_width, column, sizes) + at.channel);
      }
#pragma unroll
      for (int k = 0; k < taps_in_flight; ++k) {
        if (q + k < columns.end) {
          const Span wide =
              covered(q + k, sizes.stride_w, sizes.pad_left, sizes.kernel_w, sizes.width);
          const auto count = static_cast<float>((high.end - high.begin) * (wide.end - wide.begin));
          float value[width];
          widen(packs[k], value);
#pragma unroll
          for (int i = 0; i < width; ++i) {
            sum[i] += value[i] / count;
          }
        }
      }
    }
  }
  const std::int64_t line = std::int64_t{at.n} * sizes.height + at.row;
  store<width>(dx + pixel_at(line, sizes.width, at.column, sizes) + at.channel, sum);
}

// in: dy, indices. out: dx.
void run_max(Stream& stream, const Operands& operands, const Window& window) {
  const TensorDesc& dx = operands.out[0].desc;
  const PoolSizes sizes = pool_sizes(window, dx.shape, operands.in[0].desc.shape);
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
  const PoolSizes sizes = pool_sizes(window, dx.shape, operands.in[0].desc.shape);
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
  table.add<MaxPoolBackward>(
      [](const MaxPoolBackward& /*op*/, const Signature& asked) -> std::optional<KernelSpec> {
        return in_nhwc(asked);
      },
      [](const MaxPoolBackward& op, const Signature& /*s*/) {
        return own_kernel([window = op.window](Stream& stream, const Operands& operands) {
          run_max(stream, operands, window);
        });
      });
  table.add<AveragePoolBackward>(
      [](const AveragePoolBackward& /*op*/, const Signature& asked) -> std::optional<KernelSpec> {
        return in_nhwc(asked);
      },
      [](const AveragePoolBackward& op, const Signature& /*s*/) {
        return own_kernel([window = op.window](Stream& stream, const Operands& operands) {
          run_average(stream, operands, window);
        });
      });
}

}  // namespace cnn::layers::cuda
