#include <algorithm>
#include <cstdint>

#include "layers/cuda/own_kernel.h"
#include "layers/cuda/rows.h"
#include "layers/cuda/tile.cuh"
#include "layers/cuda/vector.cuh"
#include "layers/lrn.h"

// Local response normalisation across channels. A block stages the contiguous channels of a few
// pixels in shared memory as f32, where every thread reads the window of its channel. Neighbouring
// threads take neighbouring channels, so that there are no bank conflicts. Memory traffic is
// minimal: every operand is moved once.
namespace cnn::layers::cuda {

namespace {

struct LrnSizes {
  std::int64_t pixels = 0;  // of all images
  int channels = 0;
  int pixels_per_block = 1;
  int radius = 0;
  float bias = 0, alpha = 0, beta = 0;
};

// The contiguous elements of one block: those of pixels_per_block pixels; the last block may have
// fewer.
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

// Copies `count` elements from `from` on into shared memory as f32.
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

// The window of an element: the channels of its pixel at most `radius` away.
struct Neighbours {
  int begin = 0, end = 0;  // element indices in the block's part

  __device__ Neighbours(int element, const LrnSizes& sizes) {
    const int channel = element % sizes.channels;
    const int pixel = element - channel;
    begin = pixel + max(channel - sizes.radius, 0);
    end = pixel + min(channel + sizes.radius + 1, sizes.channels);
  }
};

// Returns s = bias + alpha sum x^2 over the window.
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

// Writes dx[c] = dy[c] s[c]^-beta - 2 alpha beta x[c] sum over d of dy[d] x[d] s[d]^(-beta-1).
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

// The launch configuration, with `arrays` floats of shared memory per element of a block.
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
  const LrnLaunch lrn_launch(attributes, x, 1);
  with_type_and_width(x.type, lrn_launch.width, [&](auto tag, auto width) {
    using T = typename decltype(tag)::Type;
    cnn::cuda::launch(lrn<T, decltype(width)::value>, lrn_launch.grid, dim3(tile_threads),
                      lrn_launch.shared_bytes, stream, data_of<T>(operands.in[0]),
                      data_of<T>(operands.out[0]), lrn_launch.sizes);
  });
}

constexpr int gradient_arrays = 3;

// in: x, dy. out: dx.
void run_lrn_gradient(Stream& stream, const Operands& operands, const LrnAttributes& attributes) {
  const TensorDesc& x = operands.in[0].desc;
  const LrnLaunch lrn_launch(attributes, x, gradient_arrays);
  with_type_and_width(x.type, lrn_launch.width, [&](auto tag, auto width) {
    using T = typename decltype(tag)::Type;
    cnn::cuda::launch(lrn_gradient<T, decltype(width)::value>, lrn_launch.grid, dim3(tile_threads),
                      lrn_launch.shared_bytes, stream, data_of<T>(operands.in[0]),
                      data_of<T>(operands.in[1]), data_of<T>(operands.out[0]), lrn_launch.sizes);
  });
}

// One pixel must fit the shared memory that every device gives without being asked.
std::optional<KernelSpec> describe(const Signature& request) {
  const auto bytes =
      static_cast<std::size_t>(request.in[0].shape[1]) * gradient_arrays * sizeof(float);
  if (bytes > cnn::cuda::default_shared_bytes) {
    return std::nullopt;
  }
  return in_nhwc(request);
}

}  // namespace

void add_lrn_rows(KernelTable& table) {
  table.add<Lrn>([](const Lrn& /*op*/, const Signature& request) { return describe(request); },
                 [](const Lrn& op, const Signature& /*s*/) {
                   return own_kernel([a = op.attributes](Stream& stream, const Operands& operands) {
                     run_lrn(stream, operands, a);
                   });
                 });
  table.add<LrnBackward>(
      [](const LrnBackward& /*op*/, const Signature& request) { return describe(request); },
      [](const LrnBackward& op, const Signature& /*s*/) {
        return own_kernel([a = op.attributes](Stream& stream, const Operands& operands) {
          run_lrn_gradient(stream, operands, a);
        });
      });
}

}  // namespace cnn::layers::cuda
