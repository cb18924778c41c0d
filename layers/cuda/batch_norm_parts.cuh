#pragma once

#include <cstdint>

#include "layers/batch_norm.h"
#include "layers/cuda/gate.cuh"
#include "layers/cuda/tile.cuh"
#include "layers/cuda/vector.cuh"

// Code that the forms of batch norm share. All of them compute y = x scale + shift by channel from
// the same four vectors by the same operations, so that the gate of a ReLU opens in the backward
// pass exactly where it opened in the forward pass.
namespace cnn::layers::cuda {

struct NormVectors {             // f32 [C], in device memory
  const float* gamma = nullptr;  // nullptr: 1
  const float* beta = nullptr;
  const float* mean = nullptr;
  const float* variance = nullptr;
  float epsilon = 0;
};

__device__ inline float inverse_deviation(const NormVectors& v, int channel) {
  return 1 / sqrtf(v.variance[channel] + v.epsilon);
}

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

// Images of one shape in device memory.
template <class T>
struct NormaliseImages {
  const T* x = nullptr;
  const T* residual = nullptr;   // nullptr: none
  T* y = nullptr;                // may be x
  std::int64_t y_pitch = 0;      // between pixels; the others have no gaps
  std::uint8_t* mask = nullptr;  // of y; written if masked
};

// y = relu(scale x + shift + residual). Chunks are read from their end: the forward pass has just
// read them from the front, and the second-level cache holds what came last.
template <class T, int width, bool masked>
__global__ void __launch_bounds__(tile_threads)
    normalise(NormaliseImages<T> images, NormVectors vectors, Tile tile, bool relu) {
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
          const float sum = affine(value[i], i) + other[i];
          value[i] = relu && sum < 0 ? 0 : sum;  // not fmaxf: NaN stays
        }
        store<width>(images.y + tile.at(row - k * lines, images.y_pitch), value);
        if (masked) {
          images.mask[tile.mask_at(row - k * lines)] = open_bits<T>(value);
        }
      }
    }
  }
}

struct NormaliseOperands {
  TensorView x, residual, y, mask;  // residual.data, mask.data: nullptr if there is none
  NormVectors vectors;
};

inline void launch_normalise(const NormaliseOperands& of, bool relu, Stream& stream) {
  const Tile columns = columns_of(of.x.desc);
  with_type_and_width(of.x.desc.type, columns.width, [&](auto tag, auto width) {
    using T = typename decltype(tag)::Type;
    constexpr int lanes = decltype(width)::value;
    const NormaliseImages<T> images{.x = data_of<T>(of.x),
                                    .residual = data_of<T>(of.residual),
                                    .y = data_of<T>(of.y),
                                    .y_pitch = pitch_of(of.y.desc),
                                    .mask = data_of<std::uint8_t>(of.mask)};
    with_mask<lanes>(images.mask != nullptr, [&](auto masked) {
      const auto kernel = normalise<T, lanes, decltype(masked)::value>;
      const Tile tile = in_one_wave(columns, kernel);
      cnn::cuda::launch(kernel, tile.grid(), tile.block(), 0, stream, images, of.vectors, tile,
                        relu);
    });
  });
}

}  // namespace cnn::layers::cuda
