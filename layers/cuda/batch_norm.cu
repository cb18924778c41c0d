#include "layers/batch_norm.h"
#include "layers/cuda/batch_norm_moments.cuh"
#include "layers/cuda/batch_norm_parts.cuh"
#include "layers/cuda/own_kernel.h"
#include "layers/cuda/rows.h"
#include "layers/cuda/tile.cuh"

// The training form of batch normalisation: a two-pass reduction for the moments of each channel,
// then the normalisation. Memory traffic for an image of S bytes: x is read twice and y written
// once, 3 S, and a residual is read once. This is minimal unless x fits in the L2 cache. The
// partial sums take 12 bytes per channel and chunk, less than 4 MB in total.
namespace cnn::layers::cuda {

namespace {

// The mean and the biased variance of a channel, written by finish_moments().
struct MeanAndVariance {
  float *mean = nullptr, *variance = nullptr;
  __device__ void operator()(int channel, double of_channel, double squares, double count) const {
    mean[channel] = static_cast<float>(of_channel);
    variance[channel] = static_cast<float>(squares / count);
  }
};

// The kernel of a BatchNorm node. in: x, [gamma], beta, [residual]. out: y, mean, variance, [mask].
class Forward {
 public:
  Forward(const BatchNormAttributes& a, const TensorDesc& x)
      : attributes_(a), tile_(moments_tile_of(x)) {}

  std::size_t workspace() const { return moments_workspace(tile_); }

  void operator()(Stream& stream, const Operands& operands) const {
    const bool scale = attributes_.scale;
    const NormOperandIndices at(scale);
    const NormVectors vectors{.gamma = scale ? data_of<float>(operands.in[at.gamma]) : nullptr,
                              .beta = data_of<float>(operands.in[at.beta]),
                              .mean = data_of<float>(operands.out[1]),
                              .variance = data_of<float>(operands.out[2]),
                              .epsilon = static_cast<float>(attributes_.epsilon)};
    launch_moments(
        operands, tile_,
        MeanAndVariance{data_of<float>(operands.out[1]), data_of<float>(operands.out[2])}, stream);
    launch_normalise({.x = operands.in[0],
                      .residual = attributes_.residual ? operands.in.back() : TensorView{},
                      .y = operands.out[0],
                      .mask = attributes_.mask ? operands.out[3] : TensorView{},
                      .vectors = vectors},
                     {.relu = attributes_.relu, .limit = attributes_.limit}, stream);
  }

 private:
  BatchNormAttributes attributes_;
  Tile tile_;
};

}  // namespace

void add_batch_norm_rows(KernelTable& table) {
  table.add<BatchNorm>(
      [](const BatchNorm& op, const Signature& request) -> std::optional<KernelSpec> {
        if (op.attributes.mask && !has_mask(request.in[0])) {
          return std::nullopt;
        }
        KernelSpec spec = in_nhwc(request, Forward(op.attributes, request.in[0]).workspace());
        keep_pitch(spec.out[0], request.out[0]);
        return spec;
      },
      [](const BatchNorm& op, const Signature& s) {
        return own_kernel(Forward(op.attributes, s.in[0]));
      });
}

}  // namespace cnn::layers::cuda
