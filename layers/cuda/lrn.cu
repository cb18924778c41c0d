#include <algorithm>
#include <cstdint>

#include "layers/cuda/own_kernel.h"
#include "layers/cuda/rows.h"
#include "layers/cuda/tile.cuh"
#include "layers/cuda/vector.cuh"
#include "layers/lrn.h"

// A block takes a few whole pixels: their channels, which are neighbours in memory, go through
// shared memory as f32, where each thread finds the window of its channel; neighbouring threads
// take neighbouring channels, so that no two meet in a bank. Bytes: every operand is moved once,
// the floor.
namespace cnn::layers::cuda {

namespace {

struct LrnSizes {
  std::int64_t pixels = 0;  // of all images
  int channels = 0;
  int pixels_per_block = 1;
  int radius = 0;
  float bias = 0, alpha = 0, beta = 0;
};

// The elements that a block takes: pixels_per_block pixels, fewer at the end.
struct LrnPart {
  std::int64_t first = 0;
  int count = 0;

  __device__ explicit LrnPart(const LrnSizes& sizes) {
    const std::int64_t pixel = std::int64_t{blockIdx.x} * sizes.pixels_per_block;
    const std::int64_t left = sizes.pixels - pixel;
    const std::int64_t taken = left < sizes.pixels_per_block ? left : sizes.pixels_per_block;
    first = pixel * sizes.channels;
    count = static_cast<int>(taken) * sizes.channels;
  }
};

// The part of a block, elements `from` on, into shared memory.
template <class T, int width>
__device__ void fetch_part(const T* from, int count, const cnn::cuda::Shared<float>& to) {
  const int step = static_cast<int>(blockDim.x) * width;
  for (int i = static_cast<int>(threadIdx.x) * width; i < count; i += step) {
    float value[width];
    load<width>(from + i, value);
#pragma unroll
    for (int k = 0; k < width; ++k) {
      to[i + k] = value[k];
    }
  }
}

struct Neighbours {
  int begin = 0, end = 0;  // elements of the part

  __device__ Neighbours(int element, const LrnSizes& sizes) {
    const int channel = element % sizes.channels;
    const int pixel = element - channel;
    begin = pixel + max(channel - sizes.radius, 0);
    end = pixel + min(channel + sizes.radius + 1, sizes.channels);
  }
};

// s = bias + alpha sum x^2 over the neighbours.
__device__ float base(const cnn::cuda::Shared<float>& x, int element, const LrnSizes& sizes) {
  const Neighbours near(element, sizes);
  float sum = 0;
  for (int i = near.begin; i < near.end; ++i) {
    const float value = x[i];
    sum = fmaf(value, value, sum);
  }
  return fmaf(sizes.alpha, sum, sizes.bias);
}

template <class T, int width>
__global__ void __launch_bounds__(tile_threads) lrn(const T* x, T* y, LrnSizes sizes) {
  const LrnPart part(sizes);
  const cnn::cuda::Shared<float> values(0, part.count);
  fetch_part<T, width>(x + part.first, part.count, values);
  __syncthreads();
  for (int i = static_cast<int>(threadIdx.x); i < part.count; i += tile_threads) {
    const float value = values[i];
    y[part.first + i] = from_float<T>(value * powf(base(values, i, sizes), -sizes.beta));
  }
}

// dx[c] = dy[c] s[c]^-beta - 2 alpha beta x[c] sum dy[d] x[d] s[d]^(-beta-1).
template <class T, int width>
__global__ void __launch_bounds__(tile_threads)
    lrn_gradient(const T* x, const T* dy, T* dx, LrnSizes sizes) {
  const LrnPart part(sizes);
  const int block_elements = sizes.pixels_per_block * sizes.channels;
  const cnn::cuda::Shared<float> values(0, part.count);
  const cnn::cuda::Shared<float> direct(block_elements * sizeof(float), part.count);
  const cnn::cuda::Shared<float> terms(2 * block_elements * sizeof(float), part.count);
  fetch_part<T, width>(x + part.first, part.count, values);
  __syncthreads();
  for (int i = static_cast<int>(threadIdx.x); i < part.count; i += tile_threads) {
    const float s = base(values, i, sizes);
    const float passed = to_float(dy[part.first + i]) * powf(s, -sizes.beta);
    const float value = values[i];
    direct[i] = passed;
    terms[i] = passed * value / s;
  }
  __syncthreads();
  for (int i = static_cast<int>(threadIdx.x); i < part.count; i += tile_threads) {
    const Neighbours near(i, sizes);
    float sum = 0;
    for (int other = near.begin; other < near.end; ++other) {
      sum += terms[other];
    }
    const float value = values[i];
    const float passed = direct[i];
    dx[part.first + i] = from_float<T>(passed - 2 * sizes.alpha * sizes.beta * value * sum);
  }
}

// Shared memory holds `arrays` values for each element of a block's pixels.
struct LrnLaunch {
  LrnSizes sizes;
  int width = 1;
  dim3 grid;
  std::size_t shared_bytes = 0;

  LrnLaunch(const LrnAttributes& a, const TensorDesc& x, int arrays) {
    constexpr int elements_per_block = 2048;  // 8 for each thread
    const Shape& s = x.shape;
    sizes = {.pixels = s[0] * s[2] * s[3],
             .channels = static_cast<int>(s[1]),
             .pixels_per_block = std::max(1, elements_per_block / static_cast<int>(s[1])),
             .radius = static_cast<int>(a.radius),
             .bias = static_cast<float>(a.bias),
             .alpha = static_cast<float>(a.alpha),
             .beta = static_cast<float>(a.beta)};
    width = width_for(sizes.channels, x.type);
    grid = dim3(launch_count(divide_up(sizes.pixels, sizes.pixels_per_block)));
    shared_bytes = static_cast<std::size_t>(sizes.pixels_per_block) *
                   static_cast<std::size_t>(sizes.channels * arrays) * sizeof(float);
  }
};

// in: x. out: y.
void run_lrn(Stream& stream, const Operands& operands, const LrnAttributes& attributes) {
  const TensorDesc& x = operands.in[0].desc;
  const LrnLaunch of(attributes, x, 1);
  with_type_and_width(x.type, of.width, [&](auto tag, auto width) {
    using T = typename decltype(tag)::Type;
    cnn::cuda::launch(lrn<T, decltype(width)::value>, of.grid, dim3(tile_threads), of.shared_bytes,
                      stream, data_of<T>(operands.in[0]), data_of<T>(operands.out[0]), of.sizes);
  });
}

constexpr int gradient_arrays = 3;

// in: x, dy. out: dx.
void run_lrn_gradient(Stream& stream, const Operands& operands, const LrnAttributes& attributes) {
  const TensorDesc& x = operands.in[0].desc;
  const LrnLaunch of(attributes, x, gradient_arrays);
  with_type_and_width(x.type, of.width, [&](auto tag, auto width) {
    using T = typename decltype(tag)::Type;
    cnn::cuda::launch(lrn_gradient<T, decltype(width)::value>, of.grid, dim3(tile_threads),
                      of.shared_bytes, stream, data_of<T>(operands.in[0]),
                      data_of<T>(operands.in[1]), data_of<T>(operands.out[0]), of.sizes);
  });
}

// One pixel must fit the shared memory that every device gives without being asked.
std::optional<KernelSpec> describe(const Signature& asked) {
  const auto bytes =
      static_cast<std::size_t>(asked.in[0].shape[1]) * gradient_arrays * sizeof(float);
  if (bytes > cnn::cuda::default_shared_bytes) {
    return std::nullopt;
  }
  return in_nhwc(asked);
}

}  // namespace

void add_lrn_rows(KernelTable& table) {
  table.add<Lrn>([](const Lrn& /*op*/, const Signature& asked) { return describe(asked); },
                 [](const Lrn& op, const Signature& /*s*/) {
                   return own_kernel([a = op.attributes](Stream& stream, const Operands& operands) {
                     run_lrn(stream, operands, a);
                   });
                 });
  table.add<LrnBackward>(
      [](const LrnBackward& /*op*/, const Signature& asked) { return describe(asked); },
      [](const LrnBackward& op, const Signature& /*s*/) {
        return own_kernel([a = op.attributes](Stream& stream, const Operands& operands) {
          run_lrn_gradient(stream, operands, a);
        });
      });
}

}  // namespace cnn::layers::cuda
