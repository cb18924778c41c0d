#include "layers/cuda/own_kernel.h"
#include "layers/cuda/pool_parts.cuh"
#include "layers/cuda/rows.h"
#include "layers/cuda/tile.cuh"
#include "layers/cuda/vector.cuh"
#include "layers/subsample.h"

// Bytes: the pixels that are kept are read once and the result is written once.
namespace cnn::layers::cuda {

namespace {

// Copies `width` channels of a pixel, or writes zeros where there is none.
template <class T, int width>
__device__ void copy_pixel(const T* from, T* to) {
  Pack<T, width> pack{};
  if (from != nullptr) {
    pack = fetch<width>(from);
  }
  *reinterpret_cast<Pack<T, width>*>(to) = pack;
}

template <class T, int width>
__global__ void __launch_bounds__(pool_threads) keep_pixels(const T* x, T* y, PoolSizes sizes) {
  const PoolPosition at(sizes, sizes.out_height, sizes.out_width, width);
  if (!at.exists) {
    return;
  }
  const int row = at.row * sizes.stride_h - sizes.pad_top;
  const int column = at.column * sizes.stride_w - sizes.pad_left;
  const bool inside_image = row < sizes.height && column < sizes.width;
  const std::int64_t from_line = std::int64_t{at.n} * sizes.height + row;
  const std::int64_t to_line = std::int64_t{at.n} * sizes.out_height + at.row;
  copy_pixel<T, width>(
      inside_image ? x + pixel_at(from_line, sizes.width, column, sizes.channels) + at.channel
                   : nullptr,
      y + pixel_at(to_line, sizes.out_width, at.column, sizes.out_pitch) + at.channel);
}

template <class T, int width>
__global__ void __launch_bounds__(pool_threads)
    spread_gradient(const T* dy, T* dx, PoolSizes sizes) {
  const PoolPosition at(sizes, sizes.height, sizes.width, width);
  if (!at.exists) {
    return;
  }
  const int row = at.row + sizes.pad_top;
  const int column = at.column + sizes.pad_left;
  const bool is_kept = row >= 0 && column >= 0 && row % sizes.stride_h == 0 &&
                       column % sizes.stride_w == 0 && row / sizes.stride_h < sizes.out_height &&
                       column / sizes.stride_w < sizes.out_width;
  const std::int64_t from_line = std::int64_t{at.n} * sizes.out_height + row / sizes.stride_h;
  const std::int64_t to_line = std::int64_t{at.n} * sizes.height + at.row;
  copy_pixel<T, width>(
      is_kept
          ? dy + pixel_at(from_line, sizes.out_width, column / sizes.stride_w, sizes.out_pitch) +
                at.channel
          : nullptr,
      dx + pixel_at(to_line, sizes.width, at.column, sizes.channels) + at.channel);
}

// in: x. out: y.
void run_keep(Stream& stream, const Operands& operands, const Window& window) {
  const TensorDesc& y = operands.out[0].desc;
  const PoolSizes sizes = pool_sizes(window, operands.in[0].desc.shape, y);
  const int lanes = width_for(sizes.channels, y.type);
  with_type_and_width(y.type, lanes, [&](auto tag, auto width) {
    using T = typename decltype(tag)::Type;
    cnn::cuda::launch(keep_pixels<T, decltype(width)::value>, pool_grid(y, lanes),
                      dim3(pool_threads), 0, stream, data_of<T>(operands.in[0]),
                      data_of<T>(operands.out[0]), sizes);
  });
}

// in: dy. out: dx.
void run_spread(Stream& stream, const Operands& operands, const Window& window) {
  const TensorDesc& dx = operands.out[0].desc;
  const PoolSizes sizes = pool_sizes(window, dx.shape, operands.in[0].desc);
  const int lanes = width_for(sizes.channels, dx.type);
  with_type_and_width(dx.type, lanes, [&](auto tag, auto width) {
    using T = typename decltype(tag)::Type;
    cnn::cuda::launch(spread_gradient<T, decltype(width)::value>, pool_grid(dx, lanes),
                      dim3(pool_threads), 0, stream, data_of<T>(operands.in[0]),
                      data_of<T>(operands.out[0]), sizes);
  });
}

}  // namespace

void add_subsample_rows(KernelTable& table) {
  add_pool_row<Subsample>(table, Pitched::first_output, run_keep);
  add_pool_row<SubsampleBackward>(table, Pitched::first_input, run_spread);
}

}  // namespace cnn::layers::cuda
