#include <algorithm>

#include "layers/cuda/own_kernel.h"
#include "layers/cuda/rows.h"
#include "layers/cuda/tile.cuh"
#include "layers/cuda/vector.cuh"
#include "layers/pool.h"

// Global average pooling and its gradient. Memory traffic is minimal: x or dx is moved once, and
// the means are a few kilobytes. A block reduces all pixels of one image, so that there is no
// second pass.
namespace cnn::layers::cuda {

namespace {

template <class T, int width>
__global__ void __launch_bounds__(tile_threads)
    spatial_mean(const T* x, T* y, std::int64_t images, std::int64_t pixels, int channels) {
  const int channel = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x) * width;
  for (std::int64_t image = blockIdx.y; image < images; image += gridDim.y) {
    float sum[width] = {};
    if (channel < channels) {
#pragma unroll 4
      for (std::int64_t pixel = threadIdx.y; pixel < pixels; pixel += blockDim.y) {
        float value[width];
        load<width>(x + (image * pixels + pixel) * channels + channel, value);
#pragma unroll
        for (int i = 0; i < width; ++i) {
          sum[i] += value[i];
        }
      }
    }
    sum_lines(sum);  // ends with a barrier, so that the next image may reuse the shared memory
    if (channel < channels && threadIdx.y == 0) {
#pragma unroll
      for (int i = 0; i < width; ++i) {
        sum[i] /= static_cast<float>(pixels);
      }
      store<width>(y + image * channels + channel, sum);
    }
  }
}

template <class T, int width>
__global__ void __launch_bounds__(tile_threads)
    spatial_mean_gradient(const T* dy, T* dx, std::int64_t images, std::int64_t pixels,
                          int channels) {
  const int channel = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x) * width;
  if (channel >= channels) {
    return;
  }
  for (std::int64_t image = blockIdx.y; image < images; image += gridDim.y) {
    float value[width];
    load<width>(dy + image * channels + channel, value);
#pragma unroll
    for (int i = 0; i < width; ++i) {
      value[i] /= static_cast<float>(pixels);
    }
    for (std::int64_t pixel = threadIdx.y; pixel < pixels; pixel += blockDim.y) {
      store<width>(dx + (image * pixels + pixel) * channels + channel, value);
    }
  }
}

// The launch configuration: blockIdx.x is a group of channels, blockIdx.y the first image of a
// block, which takes every gridDim.y-th one.
struct MeanGrid {
  int width;
  dim3 grid, block;

  explicit MeanGrid(const TensorDesc& image) {
    const Tile tile = columns_of(image);
    width = tile.width;
    block = tile.block();
    constexpr std::int64_t max_grid_y = 65535;
    grid = dim3(static_cast<unsigned>(tile.column_groups),
                launch_count(std::min(image.shape[0], max_grid_y)));
  }
};

// in: x. out: y.
void run_mean(Stream& stream, const Operands& operands) {
  const TensorDesc& x = operands.in[0].desc;
  const MeanGrid grid(x);
  with_type_and_width(x.type, grid.width, [&](auto tag, auto width) {
    using T = typename decltype(tag)::Type;
    constexpr int lanes = decltype(width)::value;
    cnn::cuda::launch(spatial_mean<T, lanes>, grid.grid, grid.block, sum_lines_bytes<float>(lanes),
                      stream, data_of<T>(operands.in[0]), data_of<T>(operands.out[0]), x.shape[0],
                      x.shape[2] * x.shape[3], static_cast<int>(x.shape[1]));
  });
}

// in: dy. out: dx.
void run_gradient(Stream& stream, const Operands& operands) {
  const TensorDesc& dx = operands.out[0].desc;
  const MeanGrid grid(dx);
  with_type_and_width(dx.type, grid.width, [&](auto tag, auto width) {
    using T = typename decltype(tag)::Type;
    cnn::cuda::launch(spatial_mean_gradient<T, decltype(width)::value>, grid.grid, grid.block, 0,
                      stream, data_of<T>(operands.in[0]), data_of<T>(operands.out[0]), dx.shape[0],
                      dx.shape[2] * dx.shape[3], static_cast<int>(dx.shape[1]));
  });
}

}  // namespace

void add_spatial_mean_rows(KernelTable& table) {
  table.add<SpatialMean>(
      [](const SpatialMean& /*op*/, const Signature& request) -> std::optional<KernelSpec> {
        return in_nhwc(request);
      },
      [](const SpatialMean& /*op*/, const Signature& /*s*/) { return own_kernel(run_mean); });
  table.add<SpatialMeanBackward>(
      [](const SpatialMeanBackward& /*op*/, const Signature& request) -> std::optional<KernelSpec> {
        return in_nhwc(request);
      },
      [](const SpatialMeanBackward& /*op*/, const Signature& /*s*/) {
        return own_kernel(run_gradient);
      });
}

}  // namespace cnn::layers::cuda
