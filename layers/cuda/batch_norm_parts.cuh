#pragma once

#include <cstdint>

#include "layers/batch_norm.h"
#include "layers/cuda/gate.cuh"
#include "layers/cuda/tile.cuh"
#include "layers/cuda/vector.cuh"

// Device code that the batch normalisation kernels share. All of them compute y = x scale + shift
// by channel from the same four vectors with the same operations in the same order, so that the
// backward pass recomputes the sign of every ReLU input bit for bit.
namespace cnn::layers::cuda {

// The parameters and statistics of a batch norm: f32 vectors of C elements in device memory.
struct NormVectors {
  const float* gamma = nullptr;  // nullptr: the norm has no scale, gamma is 1
  const float* beta = nullptr;
  const float* mean = nullptr;
  const float* variance = nullptr;
  float epsilon = 0;
};

// Returns the vectors among the operands of an op whose inputs are x, [gamma], beta, mean, variance
// and others.
inline NormVectors vectors_among(const Operands& operands, const BatchNormAttributes& a) {
  const NormOperandIndices at(a.scale);
  return {.gamma = a.scale ? data_of<float>(operands.in[at.gamma]) : nullptr,
          .beta = data_of<float>(operands.in[at.beta]),
          .mean = data_of<float>(operands.in[at.mean]),
          .variance = data_of<float>(operands.in[at.variance]),
          .epsilon = static_cast<float>(a.epsilon)};
}

// Returns 1 / sqrt(variance + epsilon) of one channel.
__device__ inline float inverse_deviation(const NormVectors& v, int channel) {
  return 1 / sqrtf(v.variance[channel] + v.epsilon);
}

// The affine form of a batch norm for `width` neighbouring channels, held in registers:
// scale = gamma / sqrt(variance + epsilon), shift = beta - mean scale.
template <int width>
struct Affine {
  float scale[width];
  float shift[width];

  __device__ Affine(const NormVectors& v, int channel) {
#pragma unroll
    for (int i = 0; i < width; ++i) {
      const int c = channel + i;
      scale[i] = inverse_deviation(v, c) * (v.gamma == nullptr ? 1 : v.gamma[c]);
      shift[i] = fmaf(-v.mean[c], scale[i], v.beta[c]);
    }
  }
  __device__ float operator()(float x, int i) const { return fmaf(x, scale[i], shift[i]); }
};

// The images of normalise(), all of one shape, in nhwc in device memory.
template <class T>
struct NormaliseImages {
  const T* x = nullptr;
  const T* residual = nullptr;   // nullptr: there is no residual
  T* y = nullptr;                // may alias x
  std::int64_t y_pitch = 0;      // elements from one pixel of y to the next; x is contiguous
  std::uint8_t* mask = nullptr;  // the ReLU mask of y, an output if `masked`
};

// Writes y = activation(scale x + shift + residual). Blocks walk their chunk of rows from its end:
// the pass before this one has read it from the front, so that the L2 cache still holds its end.
template <class T, int width, bool masked>
__global__ void __launch_bounds__(tile_threads)
    normalise(NormaliseImages<T> images, NormVectors vectors, Tile tile, Activation activation) {
  const int channel = tile.channel();
  if (channel >= tile.channels) {
    return;
  }
  const Affine<width> affine(vectors, channel);
  const int chunk = static_cast<int>(blockIdx.y);
  const std::int64_t first = tile.first_row(chunk);
  const int lines = static_cast<int>(blockDim.y);
  for (std::int64_t row = tile.end_row(chunk) - 1 - threadIdx.y; row >= first;
       row -= rows_in_flight * lines) {
    Pack<T, width> x[rows_in_flight];
    Pack<T, width> residual[rows_in_flight] = {};
#pragma unroll
    for (int k = 0; k < rows_in_flight; ++k) {
      const std::int64_t at = tile.at(row - k * lines >= first ? row - k * lines : row);
      x[k] = fetch<width>(images.x + at);
      if (images.residual != nullptr) {
        residual[k] = fetch<width>(images.residual + at);
      }
    }
#pragma unroll
    for (int k = 0; k < rows_in_flight; ++k) {
      if (row - k * lines >= first) {
        float value[width];
        float other[width];
        widen(x[k], value);
        widen(residual[k], other);
#pragma unroll
        for (int i = 0; i < width; ++i) {
          value[i] = activation(affine(value[i], i) + other[i]);
        }
        store<width>(images.y + tile.at(row - k * lines, images.y_pitch), value);
        if constexpr (masked) {
          store_open_bits<T>(images.mask + tile.mask_at(row - k * lines), value);
        }
      }
    }
  }
}

struct NormaliseOperands {
  TensorView x, residual, y, mask;  // a residual or mask that is absent has data == nullptr
  NormVectors vectors;
};

// Enqueues normalise() on the stream, with the type and the widest access that the operands allow.
inline void launch_normalise(const NormaliseOperands& operands, const Activation& activation,
                             Stream& stream) {
  const Tile columns = columns_of(operands.x.desc);
  with_type_and_width(operands.x.desc.type, columns.width, [&](auto tag, auto width) {
    using T = typename decltype(tag)::Type;
    constexpr int lanes = decltype(width)::value;
    const NormaliseImages<T> images{.x = data_of<T>(operands.x),
                                    .residual = data_of<T>(operands.residual),
                                    .y = data_of<T>(operands.y),
                                    .y_pitch = pitch_of(operands.y.desc),
                                    .mask = data_of<std::uint8_t>(operands.mask)};
    with_mask<T, lanes>(images.mask != nullptr, [&](auto masked) {
      const auto kernel = normalise<T, lanes, decltype(masked)::value>;
      const Tile tile = in_one_wave(columns, kernel);
      cnn::cuda::launch(kernel, tile.grid(), tile.block(), 0, stream, images, operands.vectors,
                        tile, activation);
    });
  });
}

}  // namespace cnn::layers::cuda
