#pragma once

#include <cstdint>
#include <type_traits>

#include "layers/cuda/batch_norm_parts.cuh"
#include "layers/cuda/gate.cuh"
#include "layers/cuda/tile.cuh"
#include "layers/cuda/vector.cuh"
#include "runtime/cuda/launch.h"

// Device code of the gradient of a batch norm: the sums by channel in two passes, and the gradient
// of its input. The op of a whole batch and those of slices of a batch use it.
namespace cnn::layers::cuda {

// The partial sums of the first pass are sum g and sum g (x - mean), stored by keep_pairs().

// The loads in flight per image, as rows_in_flight, for kernels that read up to four images.
constexpr int summed_rows = 2;

// The source of the ReLU derivative: there is no ReLU; its sign is recomputed from x; it is that of
// the stored output y; it is read from a mask.
enum class Gate : std::uint8_t { open, recomputed, output, mask };

// Returns whether the first pass stores g, the gradient after the ReLU, for the second pass.
__device__ inline bool stores_gradient(Gate gate) {
  return gate == Gate::output || gate == Gate::mask;
}

// The images of both passes, in nhwc in device memory.
template <class T>
struct GradientImages {
  const T* x = nullptr;
  const T* dy = nullptr;      // in the second pass g, if stores_gradient()
  std::int64_t dy_pitch = 0;  // elements from one pixel of dy to the next; others are contiguous
  const T* dy2 = nullptr;     // the second gradient of a fused addition
  const T* y = nullptr;       // only with Gate::output
  const std::uint8_t* mask = nullptr;  // only with Gate::mask
  T* g = nullptr;                      // output of the first pass, if stores_gradient()
  T* dx = nullptr;                     // output of the second pass; may alias dy or dy2
};

// First pass. two: the gradient is dy + dy2. limit: of the ReLU whose gate is recomputed, as
// is_open() takes it.
template <class T, int width, bool two>
__global__ void __launch_bounds__(tile_threads)
    chunk_gradient_sums(GradientImages<T> images, NormVectors vectors, Tile tile, Gate gate,
                        float limit, float* partials) {
  const int channel = tile.channel();
  const int chunk = static_cast<int>(blockIdx.y);
  const bool active = channel < tile.channels;
  float sums[2 * width] = {};  // of g, then of g (x - mean)
  if (active) {
    const Affine<width> affine(vectors, channel);
    float mean[width];
    load<width>(vectors.mean + channel, mean);
    const std::int64_t end = tile.end_row(chunk);
    const int lines = static_cast<int>(blockDim.y);
    for (std::int64_t row = tile.first_row(chunk) + threadIdx.y; row < end;
         row += summed_rows * lines) {
      Pack<T, width> x[summed_rows];
      Pack<T, width> dy[summed_rows];
      Pack<T, width> dy2[summed_rows] = {};
      Pack<T, width> y[summed_rows] = {};
      std::uint8_t mask[summed_rows] = {};
#pragma unroll
      for (int k = 0; k < summed_rows; ++k) {
        const std::int64_t source = row + k * lines < end ? row + k * lines : row;
        const std::int64_t at = tile.at(source);
        x[k] = fetch<width>(images.x + at);
        dy[k] = fetch<width>(images.dy + tile.at(source, images.dy_pitch));
        if (two) {
          dy2[k] = fetch<width>(images.dy2 + at);
        }
        if (gate == Gate::output) {
          y[k] = fetch<width>(images.y + at);
        } else if (width == full_width<T> && gate == Gate::mask) {
          mask[k] = images.mask[tile.mask_at(source)];
        }
      }
#pragma unroll
      for (int k = 0; k < summed_rows; ++k) {
        if (row + k * lines < end) {
          float value[width];
          float g[width];
          float g2[width];
          widen(x[k], value);
          widen(dy[k], g);
          widen(dy2[k], g2);
#pragma unroll
          for (int i = 0; i < width; ++i) {
            g[i] = two ? g[i] + g2[i] : g[i];
            const bool opens = gate == Gate::output ? is_open(to_float(y[k].element[i]))
                               : gate == Gate::mask ? (open_bits(mask[k], channel) >> i & 1) != 0
                                                    : is_open(affine(value[i], i), limit);
            g[i] = gated(g[i], gate == Gate::open || opens);
            sums[i] += g[i];
            sums[width + i] = fmaf(g[i], value[i] - mean[i], sums[width + i]);
          }
          if (stores_gradient(gate)) {
            store<width>(images.g + tile.at(row + k * lines), g);
          }
        }
      }
    }
  }
  sum_lines(sums);
  if (active && threadIdx.y == 0) {
    keep_pairs<width>(sums, partials, tile, chunk, channel);
  }
}

// Adds the partial sums over the chunks in double and writes dbeta = sum g and
// dgamma = sum g (x - mean) / sqrt(variance + epsilon).
static __global__ void __launch_bounds__(tile_threads)
    finish_gradient_sums(const float* partials, NormVectors vectors, Tile tile, float* dbeta,
                         float* dgamma) {
  const int channel = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  const bool active = channel < tile.channels;
  double sums[2] = {};
  if (active) {
    add_pairs(partials, tile, channel, sums);
  }
  sum_lines(sums);
  if (active && threadIdx.y == 0) {
    dbeta[channel] = static_cast<float>(sums[0]);
    dgamma[channel] = static_cast<float>(sums[1] * inverse_deviation(vectors, channel));
  }
}

// Second pass: writes dx = scale (g - dbeta / n - xhat dgamma / n) = scale g + slope x + offset.
// share: 1 / n, with n the values of a channel over which dbeta and dgamma are sums.
template <class T, int width, bool two>
__global__ void __launch_bounds__(tile_threads)
    differentiate(GradientImages<T> images, NormVectors vectors, Tile tile, Gate gate, float limit,
                  const float* dbeta, const float* dgamma, float share) {
  const int channel = tile.channel();
  if (channel >= tile.channels) {
    return;
  }
  const Affine<width> affine(vectors, channel);
  float slope[width];
  float offset[width];
#pragma unroll
  for (int i = 0; i < width; ++i) {
    const int c = channel + i;
    slope[i] = -affine.scale[i] * inverse_deviation(vectors, c) * (dgamma[c] * share);
    offset[i] = fmaf(-slope[i], vectors.mean[c], -affine.scale[i] * (dbeta[c] * share));
  }
  const int chunk = static_cast<int>(blockIdx.y);
  const std::int64_t first = tile.first_row(chunk);
  const int lines = static_cast<int>(blockDim.y);
  constexpr int rows = two ? summed_rows : rows_in_flight;
  for (std::int64_t row = tile.end_row(chunk) - 1 - threadIdx.y; row >= first;
       row -= rows * lines) {
    Pack<T, width> x[rows];
    Pack<T, width> dy[rows];
    Pack<T, width> dy2[rows] = {};
#pragma unroll
    for (int k = 0; k < rows; ++k) {
      const std::int64_t source = row - k * lines >= first ? row - k * lines : row;
      const std::int64_t at = tile.at(source);
      x[k] = fetch<width>(images.x + at);
      dy[k] = fetch<width>(images.dy + tile.at(source, images.dy_pitch));
      if (two) {
        dy2[k] = fetch<width>(images.dy2 + at);
      }
    }
#pragma unroll
    for (int k = 0; k < rows; ++k) {
      if (row - k * lines >= first) {
        float value[width];
        float g[width];
        float g2[width];
        widen(x[k], value);
        widen(dy[k], g);
        widen(dy2[k], g2);
#pragma unroll
        for (int i = 0; i < width; ++i) {
          g[i] = two ? g[i] + g2[i] : g[i];
          g[i] = gated(g[i], gate != Gate::recomputed || is_open(affine(value[i], i), limit));
          g[i] = fmaf(affine.scale[i], g[i], fmaf(slope[i], value[i], offset[i]));
        }
        store<width>(images.dx + tile.at(row - k * lines), g);
      }
    }
  }
}

// Dispatches on a fused gradient addition: calls function(std::bool_constant<two>).
template <class Function>
void with_two(bool two, const Function& function) {
  two ? function(std::true_type{}) : function(std::false_type{});
}

// Returns the tile of the first pass for an image; two as in chunk_gradient_sums().
inline Tile gradient_tile_of(const TensorDesc& x, bool two) {
  return sums_tile_of(x, [two](auto tag, auto width) {
    using T = typename decltype(tag)::Type;
    constexpr int lanes = decltype(width)::value;
    return two ? chunk_gradient_sums<T, lanes, true> : chunk_gradient_sums<T, lanes, false>;
  });
}

// The arguments of both passes. The first one writes the sums, the second one reads them.
template <class T>
struct GradientPass {
  GradientImages<T> images;  // a dy2 that is nullptr: there is one gradient
  NormVectors vectors;
  Tile tile;
  Gate gate = Gate::open;
  float limit = INFINITY;     // of a ReLU whose gate is recomputed
  float* partials = nullptr;  // of the first pass, pair_floats() elements
  float *dbeta = nullptr, *dgamma = nullptr;
};

// Enqueues the first pass: the sums of every chunk, then those of all chunks.
template <class T, int width>
void launch_gradient_sums(const GradientPass<T>& pass, Stream& stream) {
  with_two(pass.images.dy2 != nullptr, [&](auto two) {
    cnn::cuda::launch(chunk_gradient_sums<T, width, decltype(two)::value>, pass.tile.grid(),
                      pass.tile.block(), sum_lines_bytes<float>(2 * width), stream, pass.images,
                      pass.vectors, pass.tile, pass.gate, limit_of_gate(pass.limit), pass.partials);
  });
  cnn::cuda::launch(finish_gradient_sums, finish_grid(pass.tile), finish_block(),
                    sum_lines_bytes<double>(2), stream, pass.partials, pass.vectors, pass.tile,
                    pass.dbeta, pass.dgamma);
}

// Enqueues the second pass, in a wave of its own kernel. share as in differentiate().
template <class T, int width>
void launch_input_gradient(const GradientPass<T>& pass, float share, Stream& stream) {
  with_two(pass.images.dy2 != nullptr, [&](auto two) {
    const auto kernel = differentiate<T, width, decltype(two)::value>;
    const Tile tile = in_one_wave(pass.tile, kernel);
    cnn::cuda::launch(kernel, tile.grid(), tile.block(), 0, stream, pass.images, pass.vectors, tile,
                      pass.gate, limit_of_gate(pass.limit), pass.dbeta, pass.dgamma, share);
  });
}

}  // namespace cnn::layers::cuda
