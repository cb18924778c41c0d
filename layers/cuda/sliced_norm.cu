#include <algorithm>
#include <vector>

#include "layers/cuda/batch_norm_gradient.cuh"
#include "layers/cuda/batch_norm_moments.cuh"
#include "layers/cuda/batch_norm_parts.cuh"
#include "layers/cuda/own_kernel.h"
#include "layers/cuda/rows.h"
#include "layers/cuda/tile.cuh"
#include "layers/sliced_norm.h"

// The parts of a batch norm whose batch is computed in slices. They run the passes of the whole
// norm: the moments and the sums of the gradient are reductions in two passes, and the gradient of
// the input is the second pass of the backward kernel with the sums of the batch.
namespace cnn::layers::cuda {

namespace {

// The mean of a channel and its sum of squared differences, written by finish_moments().
struct MeanAndSquares {
  float *mean = nullptr, *squares = nullptr;
  __device__ void operator()(int channel, double of_channel, double of_differences,
                             double /*count*/) const {
    mean[channel] = static_cast<float>(of_channel);
    squares[channel] = static_cast<float>(of_differences);
  }
};

// The kernel of a NormMoments node. in: x. out: mean, squares.
class SliceMoments {
 public:
  explicit SliceMoments(const TensorDesc& x) : tile_(moments_tile_of(x)) {}

  std::size_t workspace() const { return moments_workspace(tile_); }

  void operator()(Stream& stream, const Operands& operands) const {
    launch_moments(operands, tile_,
                   MeanAndSquares{data_of<float>(operands.out[0]), data_of<float>(operands.out[1])},
                   stream);
  }

 private:
  Tile tile_;
};

struct MomentsOfSlice {
  const float *mean = nullptr, *squares = nullptr;
  double count = 0;
};

// The kernel takes its table of slices by value; kernel parameters are limited to 4 KB.
constexpr std::size_t slices_per_launch = 160;
struct MomentsOfSlices {
  MomentsOfSlice slices[slices_per_launch];  // std::array has no operator[] on a device
  int count = 0;
  double before = 0;  // values per channel in the slices of earlier launches
};
static_assert(sizeof(MomentsOfSlices) <= 4000);

// The merged moments of the slices so far, f64 [C] each, in the workspace: a float would lose what
// the next launch needs.
struct RunningMoments {
  double *mean = nullptr, *squares = nullptr;
};

constexpr int merge_threads = 128;

// Merges slices into the running moments, one thread per channel, and writes the mean and the
// biased variance of all slices so far.
__global__ void __launch_bounds__(merge_threads)
    merge_moments(MomentsOfSlices slices, RunningMoments running, int channels, float* mean,
                  float* variance) {
  const int channel = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (channel >= channels) {
    return;
  }
  double before = slices.before;
  double merged = before > 0 ? running.mean[channel] : 0;
  double squares = before > 0 ? running.squares[channel] : 0;
  for (int s = 0; s < slices.count; ++s) {
    const MomentsOfSlice& slice = slices.slices[s];
    const double after = before + slice.count;
    const double share = slice.count / after;
    const double distance = slice.mean[channel] - merged;
    merged += distance * share;
    squares += slice.squares[channel] + distance * distance * before * share;
    before = after;
  }
  running.mean[channel] = merged;
  running.squares[channel] = squares;
  mean[channel] = static_cast<float>(merged);
  variance[channel] = static_cast<float>(squares / before);
}

// The kernel of a MergeMoments node. in: for each slice mean, squares. out: mean, variance.
class Merge {
 public:
  Merge(const MergeMoments& op, const TensorDesc& mean)
      : counts_(op.counts), channels_(mean.shape[0]) {}

  std::size_t workspace() const {
    BumpAllocator allocator;
    (void)running(allocator);
    return allocator.bytes();
  }

  void operator()(Stream& stream, const Operands& operands) const {
    BumpAllocator allocator(operands.workspace);
    const RunningMoments between = running(allocator);
    double before = 0;
    for (std::size_t first = 0; first < counts_.size(); first += slices_per_launch) {
      MomentsOfSlices slices{};
      slices.count = static_cast<int>(std::min(slices_per_launch, counts_.size() - first));
      slices.before = before;
      for (int s = 0; s < slices.count; ++s) {
        const std::size_t slice = first + static_cast<std::size_t>(s);
        slices.slices[s] = {.mean = data_of<float>(operands.in[2 * slice]),
                            .squares = data_of<float>(operands.in[2 * slice + 1]),
                            .count = counts_[slice]};
        before += counts_[slice];
      }
      cnn::cuda::launch(merge_moments, dim3(launch_count(divide_up(channels_, merge_threads))),
                        dim3(merge_threads), 0, stream, slices, between,
                        static_cast<int>(channels_), data_of<float>(operands.out[0]),
                        data_of<float>(operands.out[1]));
    }
  }

 private:
  RunningMoments running(BumpAllocator& allocator) const {
    double* const mean = allocator.take<double>(channels_);
    return {.mean = mean, .squares = allocator.take<double>(channels_)};
  }

  std::vector<double> counts_;
  std::int64_t channels_;
};

// The kernel of a NormGradientSums node. in: x, [gamma], beta, mean, variance, dy, [dy2], [y]. out:
// dbeta, dgamma, [g].
class SliceSums {
 public:
  SliceSums(const NormGradientSums& op, const TensorDesc& x)
      : op_(op), tile_(gradient_tile_of(x, op.joined)) {}

  std::size_t workspace() const {
    BumpAllocator allocator;
    allocator.take<float>(pair_floats(tile_));
    return allocator.bytes();
  }

  void operator()(Stream& stream, const Operands& operands) const {
    with_type_and_width(operands.in[0].desc.type, tile_.width, [&](auto tag, auto width) {
      run<typename decltype(tag)::Type, decltype(width)::value>(stream, operands);
    });
  }

 private:
  template <class T, int width>
  void run(Stream& stream, const Operands& operands) const {
    BumpAllocator allocator(operands.workspace);
    float* const partials = allocator.take<float>(pair_floats(tile_));
    const std::size_t dy = op_.index_of_dy();
    const bool passes = op_.passes_gradient();
    const GradientImages<T> images{.x = data_of<T>(operands.in[0]),
                                   .dy = data_of<T>(operands.in[dy]),
                                   .dy_pitch = pitch_of(operands.in[dy].desc),
                                   .dy2 = op_.joined ? data_of<T>(operands.in[dy + 1]) : nullptr,
                                   .y = passes ? data_of<T>(operands.in.back()) : nullptr,
                                   .g = passes ? data_of<T>(operands.out.back()) : nullptr};
    const Gate gate = passes ? Gate::output : op_.attributes.relu ? Gate::recomputed : Gate::open;
    launch_gradient_sums<T, width>({.images = images,
                                    .vectors = vectors_among(operands, op_.attributes),
                                    .tile = tile_,
                                    .gate = gate,
                                    .limit = op_.attributes.limit,
                                    .partials = partials,
                                    .dbeta = data_of<float>(operands.out[0]),
                                    .dgamma = data_of<float>(operands.out[1])},
                                   stream);
  }

  NormGradientSums op_;
  Tile tile_;
};

// The kernel of a NormInputGradient node. in: x, [gamma], beta, mean, variance, dbeta, dgamma, g,
// [dy2]. out: dx.
class SliceGradient {
 public:
  explicit SliceGradient(const NormInputGradient& op) : op_(op) {}

  void operator()(Stream& stream, const Operands& operands) const {
    const Tile columns = columns_of(operands.in[0].desc);
    with_type_and_width(operands.in[0].desc.type, columns.width, [&](auto tag, auto width) {
      run<typename decltype(tag)::Type, decltype(width)::value>(stream, operands, columns);
    });
  }

 private:
  template <class T, int width>
  void run(Stream& stream, const Operands& operands, const Tile& columns) const {
    const std::size_t sums = op_.index_of_sums();
    const TensorView& g = operands.in[sums + 2];
    const GradientImages<T> images{.x = data_of<T>(operands.in[0]),
                                   .dy = data_of<T>(g),
                                   .dy_pitch = pitch_of(g.desc),
                                   .dy2 = op_.joined ? data_of<T>(operands.in.back()) : nullptr,
                                   .dx = data_of<T>(operands.out[0])};
    launch_input_gradient<T, width>({.images = images,
                                     .vectors = vectors_among(operands, op_.attributes),
                                     .tile = columns,
                                     .gate = op_.gates() ? Gate::recomputed : Gate::open,
                                     .limit = op_.attributes.limit,
                                     .dbeta = data_of<float>(operands.in[sums]),
                                     .dgamma = data_of<float>(operands.in[sums + 1])},
                                    1 / static_cast<float>(op_.count), stream);
  }

  NormInputGradient op_;
};

}  // namespace

void add_sliced_norm_rows(KernelTable& table) {
  table.add<NormMoments>(
      [](const NormMoments& /*op*/, const Signature& request) -> std::optional<KernelSpec> {
        return in_nhwc(request, SliceMoments(request.in[0]).workspace());
      },
      [](const NormMoments& /*op*/, const Signature& s) {
        return own_kernel(SliceMoments(s.in[0]));
      });
  table.add<MergeMoments>(
      [](const MergeMoments& op, const Signature& request) -> std::optional<KernelSpec> {
        return in_nhwc(request, Merge(op, request.in[0]).workspace());
      },
      [](const MergeMoments& op, const Signature& s) { return own_kernel(Merge(op, s.in[0])); });
  table.add<NormGradientSums>(
      [](const NormGradientSums& op, const Signature& request) -> std::optional<KernelSpec> {
        KernelSpec spec = in_nhwc(request, SliceSums(op, request.in[0]).workspace());
        keep_pitch(spec.in[op.index_of_dy()], request.in[op.index_of_dy()]);
        return spec;
      },
      [](const NormGradientSums& op, const Signature& s) {
        return own_kernel(SliceSums(op, s.in[0]));
      });
  table.add<NormInputGradient>(
      [](const NormInputGradient& op, const Signature& request) -> std::optional<KernelSpec> {
        KernelSpec spec = in_nhwc(request);
        const std::size_t g = op.index_of_sums() + 2;
        keep_pitch(spec.in[g], request.in[g]);
        return spec;
      },
      [](const NormInputGradient& op, const Signature& /*s*/) {
        return own_kernel(SliceGradient(op));
      });
}

}  // namespace cnn::layers::cuda
