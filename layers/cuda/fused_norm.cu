#include <type_traits>

#include "layers/cuda/gate.cuh"
#include "layers/cuda/own_kernel.h"
#include "layers/cuda/rows.h"
#include "layers/cuda/tile.cuh"
#include "layers/fused_norm.h"

// The parts of batch norms that cuDNN's fused convolutions do not compute. Memory traffic for
// images of S bytes is minimal: ScaleBias and NormBackwardEnd read each image once and write one, 2
// S or 3 S; ChannelSums reads 1 S.
namespace cnn::layers::cuda {

namespace {

// The images of blend(), in nhwc in device memory.
template <class T>
struct BlendImages {
  const T* first = nullptr;
  const T* second = nullptr;     // not read unless `two`
  T* to = nullptr;               // may alias either of them
  std::int64_t to_pitch = 0;     // elements between pixels of `to`; the others are contiguous
  std::uint8_t* mask = nullptr;  // the ReLU mask of `to`, an output if `masked`
};

// The coefficients of blend() for one channel.
struct Coefficients {
  float first_slope = 1, second_slope = 1, offset = 0;
};

// The coefficients of a ScaleBias node: f32 vectors of C elements.
struct BlendVectors {
  const float* first_slope = nullptr;
  const float* second_slope = nullptr;  // nullptr: 1
  const float* offset = nullptr;
  const float* second_offset = nullptr;  // nullptr: 0

  __device__ Coefficients at(int c, bool /*is_first*/) const {
    return {.first_slope = first_slope[c],
            .second_slope = second_slope == nullptr ? 1 : second_slope[c],
            .offset = offset[c] + (second_offset == nullptr ? 0 : second_offset[c])};
  }
};

// The coefficients of a batch norm's gradient; see NormBackwardEnd. They are computed in double,
// which costs nothing for so few numbers, because their difference may cancel.
struct EndVectors {
  const float *sum_gx = nullptr, *sum_g = nullptr, *mean = nullptr, *reciprocal = nullptr;
  const float* gamma = nullptr;
  float* dgamma = nullptr;  // output; the first thread of each channel writes it
  double count = 0;         // values per channel

  __device__ Coefficients at(int c, bool is_first) const {
    const double r = reciprocal[c];
    const double sum = sum_g[c];
    const double gradient = r * (sum_gx[c] - mean[c] * sum);
    if (is_first) {
      dgamma[c] = static_cast<float>(gradient);
    }
    const double a = gamma[c] * r;
    const double b = -a * r * gradient / count;
    return {.first_slope = static_cast<float>(a),
            .second_slope = static_cast<float>(b),
            .offset = static_cast<float>(-b * mean[c] - a * sum / count)};
  }
};

// Writes to = activation(first_slope first + second_slope second + offset + second_offset). Blocks
// walk their chunk from its end: the kernel before wrote the image from the front, so that the L2
// cache still holds the end.
template <class T, int width, bool two, bool masked, class Vectors>
__global__ void __launch_bounds__(tile_threads)
    blend(BlendImages<T> images, Vectors vectors, Tile tile, Activation activation) {
  const int channel = tile.channel();
  if (channel >= tile.channels) {
    return;
  }
  float first_slope[width];
  float second_slope[width];
  float offset[width];
#pragma unroll
  for (int i = 0; i < width; ++i) {
    const Coefficients coefficients = vectors.at(channel + i, blockIdx.y == 0 && threadIdx.y == 0);
    first_slope[i] = coefficients.first_slope;
    second_slope[i] = coefficients.second_slope;
    offset[i] = coefficients.offset;
  }
  const int chunk = static_cast<int>(blockIdx.y);
  const std::int64_t begin = tile.first_row(chunk);
  const int lines = static_cast<int>(blockDim.y);
  for (std::int64_t row = tile.end_row(chunk) - 1 - threadIdx.y; row >= begin;
       row -= rows_in_flight * lines) {
    Pack<T, width> first[rows_in_flight];
    Pack<T, width> second[rows_in_flight] = {};
#pragma unroll
    for (int k = 0; k < rows_in_flight; ++k) {
      const std::int64_t at = tile.at(row - k * lines >= begin ? row - k * lines : row);
      first[k] = fetch<width>(images.first + at);
      if (two) {
        second[k] = fetch<width>(images.second + at);
      }
    }
#pragma unroll
    for (int k = 0; k < rows_in_flight; ++k) {
      if (row - k * lines >= begin) {
        float value[width];
        float other[width];
        widen(first[k], value);
        widen(second[k], other);
#pragma unroll
        for (int i = 0; i < width; ++i) {
          float sum = fmaf(first_slope[i], value[i], offset[i]);
          sum = two ? fmaf(second_slope[i], other[i], sum) : sum;
          value[i] = activation(sum);
        }
        store<width>(images.to + tile.at(row - k * lines, images.to_pitch), value);
        if constexpr (masked) {
          store_open_bits<T>(images.mask + tile.mask_at(row - k * lines), value);
        }
      }
    }
  }
}

template <class Vectors>
struct BlendOperands {
  TensorView first, second, to, mask;  // an absent second or mask has data == nullptr
  Vectors vectors;
  Activation activation;
};

template <class Vectors>
void launch_blend(const BlendOperands<Vectors>& operands, Stream& stream) {
  const Tile columns = columns_of(operands.first.desc);
  with_type_and_width(operands.first.desc.type, columns.width, [&](auto tag, auto width) {
    using T = typename decltype(tag)::Type;
    constexpr int lanes = decltype(width)::value;
    const BlendImages<T> images{.first = data_of<T>(operands.first),
                                .second = data_of<T>(operands.second),
                                .to = data_of<T>(operands.to),
                                .to_pitch = pitch_of(operands.to.desc),
                                .mask = data_of<std::uint8_t>(operands.mask)};
    const auto launch = [&](auto kernel) {
      const Tile tile = in_one_wave(columns, kernel);
      cnn::cuda::launch(kernel, tile.grid(), tile.block(), 0, stream, images, operands.vectors,
                        tile, operands.activation);
    };
    if constexpr (std::is_same_v<Vectors, EndVectors>) {
      launch(blend<T, lanes, true, false, Vectors>);
    } else {
      with_mask<T, lanes>(images.mask != nullptr, [&](auto masked) {
        if (images.second == nullptr) {
          launch(blend<T, lanes, false, decltype(masked)::value, Vectors>);
        } else {
          launch(blend<T, lanes, true, decltype(masked)::value, Vectors>);
        }
      });
    }
  });
}

void run_scale_bias(const ScaleBias& op, Stream& stream, const Operands& o) {
  BlendOperands<BlendVectors> operands{
      .first = o.in[0],
      .second = op.residual == ScaleBias::Residual::none ? TensorView{} : o.in[3],
      .to = o.out[0],
      .mask = op.mask ? o.out[1] : TensorView{},
      .vectors = {.first_slope = data_of<float>(o.in[1]), .offset = data_of<float>(o.in[2])},
      .activation = {.relu = op.relu, .limit = op.limit}};
  if (op.residual == ScaleBias::Residual::normalised) {
    operands.vectors.second_slope = data_of<float>(o.in[4]);
    operands.vectors.second_offset = data_of<float>(o.in[5]);
  }
  launch_blend(operands, stream);
}

void run_end(Stream& stream, const Operands& o) {
  const Shape& shape = o.in[0].desc.shape;
  const BlendOperands<EndVectors> operands{
      .first = o.in[0],
      .second = o.in[1],
      .to = o.out[0],
      .mask = {},
      .vectors = {.sum_gx = data_of<float>(o.in[2]),
                  .sum_g = data_of<float>(o.in[3]),
                  .mean = data_of<float>(o.in[4]),
                  .reciprocal = data_of<float>(o.in[5]),
                  .gamma = data_of<float>(o.in[6]),
                  .dgamma = data_of<float>(o.out[1]),
                  .count = static_cast<double>(shape.elements() / shape[1])}};
  launch_blend(operands, stream);
}

// First pass of ChannelSums: the partial sums of x and x^2, stored by keep_pairs().
template <class T, int width>
__global__ void __launch_bounds__(tile_threads) chunk_sums(const T* x, Tile tile, float* partials) {
  const int channel = tile.channel();
  const int chunk = static_cast<int>(blockIdx.y);
  const bool active = channel < tile.channels;
  float sums[2 * width] = {};  // of x, then of x^2
  if (active) {
    const std::int64_t end = tile.end_row(chunk);
    const int lines = static_cast<int>(blockDim.y);
    for (std::int64_t row = tile.first_row(chunk) + threadIdx.y; row < end;
         row += rows_in_flight * lines) {
      Pack<T, width> packs[rows_in_flight];
#pragma unroll
      for (int k = 0; k < rows_in_flight; ++k) {
        packs[k] = fetch<width>(x + tile.at(row + k * lines < end ? row + k * lines : row));
      }
#pragma unroll
      for (int k = 0; k < rows_in_flight; ++k) {
        if (row + k * lines < end) {
          float value[width];
          widen(packs[k], value);
#pragma unroll
          for (int i = 0; i < width; ++i) {
            sums[i] += value[i];
            sums[width + i] = fmaf(value[i], value[i], sums[width + i]);
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

// Second pass of ChannelSums: adds the partial sums over the chunks in double.
__global__ void __launch_bounds__(tile_threads)
    finish_sums(const float* partials, Tile tile, float* sum, float* squares) {
  const int channel = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  const bool active = channel < tile.channels;
  double sums[2] = {};
  if (active) {
    add_pairs(partials, tile, channel, sums);
  }
  sum_lines(sums);
  if (active && threadIdx.y == 0) {
    sum[channel] = static_cast<float>(sums[0]);
    squares[channel] = static_cast<float>(sums[1]);
  }
}

// The kernel of a ChannelSums node.
class ChannelSumsKernel {
 public:
  explicit ChannelSumsKernel(const TensorDesc& x)
      : tile_(sums_tile_of(x, [](auto tag, auto width) {
          return chunk_sums<typename decltype(tag)::Type, decltype(width)::value>;
        })) {}

  std::size_t workspace() const {
    BumpAllocator allocator;
    allocator.take<float>(pair_floats(tile_));
    return allocator.bytes();
  }

  void operator()(Stream& stream, const Operands& o) const {
    BumpAllocator allocator(o.workspace);
    float* const partials = allocator.take<float>(pair_floats(tile_));
    with_type_and_width(o.in[0].desc.type, tile_.width, [&](auto tag, auto width) {
      using T = typename decltype(tag)::Type;
      constexpr int lanes = decltype(width)::value;
      cnn::cuda::launch(chunk_sums<T, lanes>, tile_.grid(), tile_.block(),
                        sum_lines_bytes<float>(2 * lanes), stream, data_of<const T>(o.in[0]), tile_,
                        partials);
    });
    cnn::cuda::launch(finish_sums, finish_grid(tile_), finish_block(), sum_lines_bytes<double>(2),
                      stream, partials, tile_, data_of<float>(o.out[0]), data_of<float>(o.out[1]));
  }

 private:
  Tile tile_;
};

// The operands of finish_statistics(), as FinishStatistics names them; f32 [C] each.
struct Statistics {
  const float *sum, *squares, *gamma, *beta;
  float *mean, *variance, *reciprocal;
  double count, epsilon;
  int channels;
};

constexpr int statistics_threads = 128;

// The affine form of the norm, an output of finish_statistics().
template <class A>
struct Affine {
  A *slope, *offset;
  float *rounded_slope, *rounded_offset;  // the same values in f32; nullptr if A is f32
};

// One thread per channel. It computes in double, because the difference squares / count - mean^2
// may cancel.
template <class A>
__global__ void __launch_bounds__(statistics_threads)
    finish_statistics(Statistics s, Affine<A> affine) {
  const int c = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (c >= s.channels) {
    return;
  }
  const double mean = s.sum[c] / s.count;
  const double difference = s.squares[c] / s.count - mean * mean;
  const double variance = difference < 0 ? 0 : difference;  // rounding may yield < 0; keeps a NaN
  const double reciprocal = 1 / sqrt(variance + s.epsilon);
  const double scale = s.gamma[c] * reciprocal;
  s.mean[c] = static_cast<float>(mean);
  s.variance[c] = static_cast<float>(variance);
  s.reciprocal[c] = static_cast<float>(reciprocal);
  const A slope = from_float<A>(static_cast<float>(scale));
  const A offset = from_float<A>(static_cast<float>(s.beta[c] - mean * scale));
  affine.slope[c] = slope;
  affine.offset[c] = offset;
  if (affine.rounded_slope != nullptr) {
    affine.rounded_slope[c] = to_float(slope);
    affine.rounded_offset[c] = to_float(offset);
  }
}

void run_statistics(const FinishStatistics& op, Stream& stream, const Operands& o) {
  const Statistics s{.sum = data_of<float>(o.in[0]),
                     .squares = data_of<float>(o.in[1]),
                     .gamma = data_of<float>(o.in[2]),
                     .beta = data_of<float>(o.in[3]),
                     .mean = data_of<float>(o.out[0]),
                     .variance = data_of<float>(o.out[1]),
                     .reciprocal = data_of<float>(o.out[2]),
                     .count = op.count,
                     .epsilon = op.epsilon,
                     .channels = static_cast<int>(o.in[0].desc.shape[0])};
  with_type(o.out[3].desc.type, [&](auto tag) {
    using A = typename decltype(tag)::Type;
    const bool narrow = o.out.size() > 5;
    const Affine<A> affine{.slope = data_of<A>(o.out[3]),
                           .offset = data_of<A>(o.out[4]),
                           .rounded_slope = narrow ? data_of<float>(o.out[5]) : nullptr,
                           .rounded_offset = narrow ? data_of<float>(o.out[6]) : nullptr};
    cnn::cuda::launch(finish_statistics<A>,
                      dim3(launch_count(divide_up(s.channels, statistics_threads))),
                      dim3(statistics_threads), 0, stream, s, affine);
  });
}

// Returns the request in nhwc with all vectors in f32, which is the type that these kernels read.
KernelSpec with_f32_vectors(const Signature& request) {
  KernelSpec spec = in_nhwc(request);
  for (TensorDesc& desc : spec.in) {
    desc.type = desc.shape.rank() == 1 ? DataType::f32 : desc.type;
  }
  return spec;
}

}  // namespace

void add_fused_norm_rows(KernelTable& table) {
  table.add<ChannelSums>(
      [](const ChannelSums& /*op*/, const Signature& request) -> std::optional<KernelSpec> {
        return in_nhwc(request, ChannelSumsKernel(request.in[0]).workspace());
      },
      [](const ChannelSums& /*op*/, const Signature& s) {
        return own_kernel(ChannelSumsKernel(s.in[0]));
      });
  table.add<FinishStatistics>(
      [](const FinishStatistics& /*op*/, const Signature& request) -> std::optional<KernelSpec> {
        return in_nhwc(request);
      },
      [](const FinishStatistics& op, const Signature& /*s*/) {
        return own_kernel(
            [op](Stream& stream, const Operands& o) { run_statistics(op, stream, o); });
      });
  table.add<ScaleBias>(
      [](const ScaleBias& op, const Signature& request) -> std::optional<KernelSpec> {
        if (op.mask && !has_mask(request.in[0])) {
          return std::nullopt;
        }
        KernelSpec spec = with_f32_vectors(request);
        keep_pitch(spec.out[0], request.out[0]);
        return spec;
      },
      [](const ScaleBias& op, const Signature& /*s*/) {
        return own_kernel(
            [op](Stream& stream, const Operands& o) { run_scale_bias(op, stream, o); });
      });
  table.add<NormBackwardEnd>(
      [](const NormBackwardEnd& /*op*/, const Signature& request) -> std::optional<KernelSpec> {
        return in_nhwc(request);
      },
      [](const NormBackwardEnd& /*op*/, const Signature& /*s*/) { return own_kernel(run_end); });
}

}  // namespace cnn::layers::cuda
