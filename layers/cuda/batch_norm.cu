#include "layers/batch_norm.h"
#include "layers/cuda/batch_norm_parts.cuh"
#include "layers/cuda/own_kernel.h"
#include "layers/cuda/rows.h"
#include "layers/cuda/tile.cuh"

// Bytes: x is read twice and y written once (with a residual, that is read once): 3 S, which is
// also the floor, unless x fits the second-level cache. The partial sums are 12 bytes per channel
// and chunk: under 4 MB.
namespace cnn::layers::cuda {

namespace {

// The sums of one chunk and channel, with k = x in the first row of the chunk: k, sum (x - k) and
// sum (x - k)^2. Differences from a value of the data itself do not cancel as x^2 does when the
// mean is large. As [chunk][3][channels].
constexpr int moment_planes = 3;

template <class T, int width>
__global__ void __launch_bounds__(tile_threads)
    chunk_moments(const T* x, Tile tile, float* partials) {
  const int channel = tile.channel();
  const int chunk = static_cast<int>(blockIdx.y);
  const bool active = channel < tile.channels;
  float origin[width] = {};
  float sums[2 * width] = {};  // of differences, then of their squares
  if (active) {
    const std::int64_t first = tile.first_row(chunk);
    const std::int64_t end = tile.end_row(chunk);
    load<width>(x + tile.at(first), origin);
    const int lines = static_cast<int>(blockDim.y);
    for (std::int64_t row = first + threadIdx.y; row < end; row += rows_in_flight * lines) {
      Pack<T, width> packs[rows_in_flight];
#pragma unroll
      for (int k = 0; k < rows_in_flight; ++k) {
        packs[k] = fetch<width>(x + tile.at(row + k * lines < end ? row + k * lines : first));
      }
#pragma unroll
      for (int k = 0; k < rows_in_flight; ++k) {
        float value[width];
        widen(packs[k], value);
#pragma unroll
        for (int i = 0; i < width; ++i) {
          // The first row, read in the place of rows past the end, adds nothing.
          const float difference = value[i] - origin[i];
          sums[i] += difference;
          sums[width + i] = fmaf(difference, difference, sums[width + i]);
        }
      }
    }
  }
  sum_lines(sums);
  if (active && threadIdx.y == 0) {
    float* const to = partials + static_cast<std::int64_t>(chunk) * moment_planes * tile.channels;
#pragma unroll
    for (int i = 0; i < width; ++i) {
      to[channel + i] = origin[i];
      to[tile.channels + channel + i] = sums[i];
      to[2 * tile.channels + channel + i] = sums[width + i];
    }
  }
}

// Moves every chunk to the origin of the first, in double: with d the distance of the origins,
// sum (x - k) + n d and sum (x - k)^2 + 2 d sum (x - k) + n d^2.
__global__ void __launch_bounds__(tile_threads)
    finish_moments(const float* partials, Tile tile, float* mean, float* variance) {
  const int channel = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  const bool active = channel < tile.channels;
  double sums[2] = {};
  const double origin = active ? partials[channel] : 0;
  if (active) {
#pragma unroll 4
    for (int chunk = static_cast<int>(threadIdx.y); chunk < tile.chunks;
         chunk += static_cast<int>(blockDim.y)) {
      const float* const from =
          partials + static_cast<std::int64_t>(chunk) * moment_planes * tile.channels + channel;
      const double distance = from[0] - origin;
      const double sum = from[tile.channels];
      const auto count = static_cast<double>(tile.end_row(chunk) - tile.first_row(chunk));
      sums[0] += sum + count * distance;
      sums[1] += from[2 * tile.channels] + distance * (2 * sum + count * distance);
    }
  }
  sum_lines(sums);
  if (active && threadIdx.y == 0) {
    const auto count = static_cast<double>(tile.rows);
    const double shifted = sums[0] / count;
    const double result = sums[1] / count - shifted * shifted;
    mean[channel] = static_cast<float>(origin + shifted);
    variance[channel] = static_cast<float>(result < 0 ? 0 : result);  // rounding may go below
  }
}

// in: x, [gamma], beta, [residual]. out: y, m, v, [mask].
class Forward {
 public:
  Forward(const BatchNormAttributes& a, const TensorDesc& x)
      : attributes_(a), tile_(sums_tile_of(x, [](auto tag, auto width) {
          return chunk_moments<typename decltype(tag)::Type, decltype(width)::value>;
        })) {}

  std::size_t workspace() const {
    BumpAllocator allocator;
    allocator.take<float>(partial_floats());
    return allocator.bytes();
  }

  void operator()(Stream& stream, const Operands& operands) const {
    BumpAllocator allocator(operands.workspace);
    float* const partials = allocator.take<float>(partial_floats());
    const bool scale = attributes_.scale;
    const NormOperandIndices at(scale);
    const NormVectors vectors{.gamma = scale ? data_of<float>(operands.in[at.gamma]) : nullptr,
                              .beta = data_of<float>(operands.in[at.beta]),
                              .mean = data_of<float>(operands.out[1]),
                              .variance = data_of<float>(operands.out[2]),
                              .epsilon = static_cast<float>(attributes_.epsilon)};
    with_type_and_width(operands.in[0].desc.type, tile_.width, [&](auto tag, auto width) {
      using T = typename decltype(tag)::Type;
      constexpr int lanes = decltype(width)::value;
      cnn::cuda::launch(chunk_moments<T, lanes>, tile_.grid(), tile_.block(),
                        sum_lines_bytes<float>(2 * lanes), stream, data_of<const T>(operands.in[0]),
                        tile_, partials);
    });
    cnn::cuda::launch(finish_moments, finish_grid(tile_), finish_block(),
                      sum_lines_bytes<double>(2), stream, partials, tile_,
                      data_of<float>(operands.out[1]), data_of<float>(operands.out[2]));
    launch_normalise({.x = operands.in[0],
                      .residual = attributes_.residual ? operands.in.back() : TensorView{},
                      .y = operands.out[0],
                      .mask = attributes_.mask ? operands.out[3] : TensorView{},
                      .vectors = vectors},
                     attributes_.relu, stream);
  }

 private:
  std::int64_t partial_floats() const {
    return std::int64_t{tile_.chunks} * moment_planes * tile_.channels;
  }

  BatchNormAttributes attributes_;
  Tile tile_;
};

}  // namespace

void add_batch_norm_rows(KernelTable& table) {
  table.add<BatchNorm>(
      [](const BatchNorm& op, const Signature& asked) -> std::optional<KernelSpec> {
        if (op.attributes.mask && !has_mask_width(asked.in[0])) {
          return std::nullopt;
        }
        KernelSpec spec = in_nhwc(asked, Forward(op.attributes, asked.in[0]).workspace());
        keep_pitch(spec.out[0], asked.out[0]);
        return spec;
      },
      [](const BatchNorm& op, const Signature& s) {
        return own_kernel(Forward(op.attributes, s.in[0]));
      });
}

}  // namespace cnn::layers::cuda
