#include "layers/batch_norm.h"
#include "layers/cuda/batch_norm_parts.cuh"
#include "layers/cuda/own_kernel.h"
#include "layers/cuda/rows.h"
#include "layers/cuda/tile.cuh"

// Inference batch normalisation with moving averages, and its folding into the weights of a
// convolution. Memory traffic is minimal: x and a residual are read once, y is written once.
namespace cnn::layers::cuda {

namespace {

// The kernel of a BatchNormInference node. in: x, [gamma], beta, mean, variance, [residual]. out:
// y.
class Inference {
 public:
  explicit Inference(const BatchNormAttributes& a) : attributes_(a) {}

  void operator()(Stream& stream, const Operands& operands) const {
    launch_normalise({.x = operands.in[0],
                      .residual = attributes_.residual ? operands.in.back() : TensorView{},
                      .y = operands.out[0],
                      .vectors = vectors_among(operands, attributes_)},
                     {.relu = attributes_.relu, .limit = attributes_.limit}, stream);
  }

 private:
  BatchNormAttributes attributes_;
};

// Writes w' = w s and b' = (bias - mean) s + beta with s = gamma / sqrt(variance + epsilon). One
// block per filter.
__global__ void __launch_bounds__(tile_threads)
    fold(const float* w, NormVectors vectors, const float* bias, float* folded, float* folded_bias,
         int per_filter) {
  const int filter = static_cast<int>(blockIdx.x);
  const float scale =
      inverse_deviation(vectors, filter) * (vectors.gamma == nullptr ? 1 : vectors.gamma[filter]);
  const std::int64_t first = std::int64_t{filter} * per_filter;
  for (int i = static_cast<int>(threadIdx.x); i < per_filter; i += static_cast<int>(blockDim.x)) {
    folded[first + i] = w[first + i] * scale;
  }
  if (threadIdx.x == 0) {
    const float before = bias == nullptr ? 0 : bias[filter];
    folded_bias[filter] = fmaf(before - vectors.mean[filter], scale, vectors.beta[filter]);
  }
}

// The kernel of a FoldBatchNorm node. in: w, [gamma], beta, mean, variance, [bias]. out: w', b'.
class Fold {
 public:
  explicit Fold(const FoldBatchNorm& op) : epsilon_(op.epsilon), scale_(op.scale), bias_(op.bias) {}

  void operator()(Stream& stream, const Operands& operands) const {
    const std::size_t beta = scale_ ? 2 : 1;
    const NormVectors vectors{.gamma = scale_ ? data_of<float>(operands.in[1]) : nullptr,
                              .beta = data_of<float>(operands.in[beta]),
                              .mean = data_of<float>(operands.in[beta + 1]),
                              .variance = data_of<float>(operands.in[beta + 2]),
                              .epsilon = static_cast<float>(epsilon_)};
    const Shape& w = operands.in[0].desc.shape;
    cnn::cuda::launch(fold, dim3(launch_count(w[0])), dim3(tile_threads), 0, stream,
                      data_of<float>(operands.in[0]), vectors,
                      bias_ ? data_of<float>(operands.in.back()) : nullptr,
                      data_of<float>(operands.out[0]), data_of<float>(operands.out[1]),
                      static_cast<int>(w.elements() / w[0]));
  }

 private:
  double epsilon_;
  bool scale_, bias_;
};

}  // namespace

void add_batch_norm_inference_rows(KernelTable& table) {
  table.add<BatchNormInference>(
      [](const BatchNormInference& /*op*/, const Signature& request) -> std::optional<KernelSpec> {
        KernelSpec spec = in_nhwc(request);
        keep_pitch(spec.out[0], request.out[0]);
        return spec;
      },
      [](const BatchNormInference& op, const Signature& /*s*/) {
        return own_kernel(Inference(op.attributes));
      });
  table.add<FoldBatchNorm>(
      [](const FoldBatchNorm& /*op*/, const Signature& request) -> std::optional<KernelSpec> {
        KernelSpec spec = in_nhwc(request);
        for (TensorDesc& desc : spec.in) {
          desc.type = DataType::f32;  // the master weights, not their 16-bit copies
        }
        return spec;
      },
      [](const FoldBatchNorm& op, const Signature& /*s*/) { return own_kernel(Fold(op)); });
}

}  // namespace cnn::layers::cuda
