#include "layers/batch_norm.h"
#include "layers/cuda/batch_norm_parts.cuh"
#include "layers/cuda/gate.cuh"
#include "layers/cuda/own_kernel.h"
#include "layers/cuda/rows.h"
#include "layers/cuda/tile.cuh"

// Bytes: both passes read x and dy, the second writes dx: 5 S, the floor of two passes. With a ReLU
// after a residual the first pass reads y too and writes g, which the second reads in the place of
// dy: 7 S; a mask in the place of y saves one of them. Where two gradients meet, each pass that
// reads dy reads dy2 too: 7 and 8 S, where a sum before would add 3. The second pass reads its
// chunks from their end, which the cache still holds.
namespace cnn::layers::cuda {

namespace {

// The sums of one chunk and channel: sum g, sum g (x - m); kept as pairs, see tile.cuh.

// As rows_in_flight, of up to four images.
constexpr int summed_rows = 2;

// The data that opens the gate of the ReLU.
enum class Gate : std::uint8_t { open, recomputed, output, mask };

// Returns whether the first pass stores the gradient behind the gate, for the second pass to read.
__device__ inline bool stores_gradient(Gate gate) {
  return gate == Gate::output || gate == Gate::mask;
}

template <class T>
struct GradientImages {
  const T* x = nullptr;
  const T* dy = nullptr;      // second pass where stores_gradient: g
  std::int64_t dy_pitch = 0;  // between pixels; the others have no gaps
  const T* dy2 = nullptr;
  const T* y = nullptr;                // with Gate::output
  const std::uint8_t* mask = nullptr;  // with Gate::mask
  T* g = nullptr;                      // where stores_gradient: written by the first pass
  T* dx = nullptr;                     // written by the second pass; may be dy or dy2
};

// two: images.dy2 is added to dy.
template <class T, int width, bool two>
__global__ void __launch_bounds__(tile_threads)
    chunk_gradient_sums(GradientImages<T> images, NormVectors vectors, Tile tile, Gate gate,
                        float* partials) {
  const int channel = tile.channel();
  const int chunk = static_cast<int>(blockIdx.y);
  const bool active = channel < tile.channels;
  float sums[2 * width] = {};  // of g, then of g (x - m)
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
        const std::int64_t of = row + k * lines < end ? row + k * lines : row;
        const std::int64_t at = tile.at(of);
        x[k] = fetch<width>(images.x + at);
        dy[k] = fetch<width>(images.dy + tile.at(of, images.dy_pitch));
        if (two) {
          dy2[k] = fetch<width>(images.dy2 + at);
        }
        if (gate == Gate::output) {
          y[k] = fetch<width>(images.y + at);
        } else if (width == mask_width && gate == Gate::mask) {
          mask[k] = images.mask[at / mask_width];
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
                               : gate == Gate::mask ? (mask[k] >> i & 1) != 0
                                                    : is_open(affine(value[i], i));
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

// dbeta = sum g, dgamma = sum g (x - m) / sqrt(v + e), summed over the chunks in double.
__global__ void __launch_bounds__(tile_threads)
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

// dx = scale (g - dbeta / n - xhat dgamma / n) = scale g + slope x + offset.
template <class T, int width, bool two>
__global__ void __launch_bounds__(tile_threads)
    differentiate(GradientImages<T> images, NormVectors vectors, Tile tile, Gate gate,
                  const float* dbeta, const float* dgamma) {
  const int channel = tile.channel();
  if (channel >= tile.channels) {
    return;
  }
  const Affine<width> affine(vectors, channel);
  const float share = 1 / static_cast<float>(tile.rows);
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
      const std::int64_t of = row - k * lines >= first ? row - k * lines : row;
      const std::int64_t at = tile.at(of);
      x[k] = fetch<width>(images.x + at);
      dy[k] = fetch<width>(images.dy + tile.at(of, images.dy_pitch));
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
          g[i] = gated(g[i], gate != Gate::recomputed || is_open(affine(value[i], i)));
          g[i] = fmaf(affine.scale[i], g[i], fmaf(slope[i], value[i], offset[i]));
        }
        store<width>(images.dx + tile.at(row - k * lines), g);
      }
    }
  }
}

// Calls function(std::bool_constant<two>).
template <class Function>
void with_two(bool two, const Function& function) {
  two ? function(std::true_type{}) : function(std::false_type{});
}

// in: x, [gamma], beta, m, v, dy, [dy2], [y or mask]. out: dx, dbeta, [dgamma], [g].
class Backward {
 public:
  Backward(const BatchNormBackward& op, const TensorDesc& x)
      : op_(op), tile_(sums_tile_of(x, [&op](auto tag, auto width) {
          using T = typename decltype(tag)::Type;
          constexpr int lanes = decltype(width)::value;
          return op.joined ? chunk_gradient_sums<T, lanes, true>
                           : chunk_gradient_sums<T, lanes, false>;
        })) {}

  std::size_t workspace() const {
    BumpAllocator allocator;
    (void)Scratch(allocator, tile_);
    return allocator.bytes();
  }

  void operator()(Stream& stream, const Operands& operands) const {
    with_type_and_width(operands.in[0].desc.type, tile_.width, [&](auto tag, auto width) {
      run<typename decltype(tag)::Type, decltype(width)::value>(stream, operands);
    });
  }

 private:
  struct Scratch {
    Scratch(BumpAllocator& allocator, const Tile& tile)
        : partials(allocator.take<float>(pair_floats(tile))),
          dgamma(allocator.take<float>(tile.channels)) {}
    float *partials, *dgamma;
  };

  Gate gate() const {
    if (!op_.passes_gradient()) {
      return op_.attributes.relu ? Gate::recomputed : Gate::open;
    }
    return op_.attributes.mask ? Gate::mask : Gate::output;
  }

  NormVectors vectors(const Operands& operands) const {
    const bool scale = op_.attributes.scale;
    const NormOperandIndices at(scale);
    return {.gamma = scale ? data_of<float>(operands.in[at.gamma]) : nullptr,
            .beta = data_of<float>(operands.in[at.beta]),
            .mean = data_of<float>(operands.in[at.mean]),
            .variance = data_of<float>(operands.in[at.variance]),
            .epsilon = static_cast<float>(op_.attributes.epsilon)};
  }

  template <class T, int width>
  void run(Stream& stream, const Operands& operands) const {
    BumpAllocator allocator(operands.workspace);
    const Scratch scratch(allocator, tile_);
    const NormVectors of = vectors(operands);
    float* const dbeta = data_of<float>(operands.out[1]);
    float* const dgamma = op_.attributes.scale ? data_of<float>(operands.out[2]) : scratch.dgamma;
    const bool passes = op_.passes_gradient();
    GradientImages<T> images{
        .x = data_of<T>(operands.in[0]),
        .dy = data_of<T>(operands.in[op_.index_of_dy()]),
        .dy_pitch = pitch_of(operands.in[op_.index_of_dy()].desc),
        .dy2 = op_.joined ? data_of<T>(operands.in[op_.index_of_dy() + 1]) : nullptr,
        .y = passes ? data_of<T>(operands.in.back()) : nullptr,
        .mask = passes ? data_of<std::uint8_t>(operands.in.back()) : nullptr,
        .g = passes ? data_of<T>(operands.out.back()) : nullptr,
        .dx = data_of<T>(operands.out[0])};
    with_two(op_.joined, [&](auto two) {
      cnn::cuda::launch(chunk_gradient_sums<T, width, decltype(two)::value>, tile_.grid(),
                        tile_.block(), sum_lines_bytes<float>(2 * width), stream, images, of, tile_,
                        gate(), scratch.partials);
    });
    cnn::cuda::launch(finish_gradient_sums, finish_grid(tile_), finish_block(),
                      sum_lines_bytes<double>(2), stream, scratch.partials, of, tile_, dbeta,
                      dgamma);
    if (passes) {
      images.dy = images.g;
      images.dy_pitch = tile_.channels;
    }
    with_two(op_.joined && !passes, [&](auto two) {
      const auto kernel = differentiate<T, width, decltype(two)::value>;
      const Tile tile = in_one_wave(tile_, kernel);
      cnn::cuda::launch(kernel, tile.grid(), tile.block(), 0, stream, images, of, tile, gate(),
                        dbeta, dgamma);
    });
  }

  BatchNormBackward op_;
  Tile tile_;
};

}  // namespace

void add_batch_norm_backward_rows(KernelTable& table) {
  table.add<BatchNormBackward>(
      [](const BatchNormBackward& op, const Signature& asked) -> std::optional<KernelSpec> {
        if (op.attributes.mask && !has_mask_width(asked.in[0])) {
          return std::nullopt;
        }
        KernelSpec spec = in_nhwc(asked, Backward(op, asked.in[0]).workspace());
        keep_pitch(spec.in[op.index_of_dy()], asked.in[op.index_of_dy()]);
        return spec;
      },
      [](const BatchNormBackward& op, const Signature& s) {
        return own_kernel(Backward(op, s.in[0]));
      });
}

}  // namespace cnn::layers::cuda
