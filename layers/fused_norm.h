#pragma once

#include <limits>

#include "runtime/graph.h"
#include "runtime/op.h"

// The parts of a batch norm that remain beside a fused convolution (see fused_conv.h). These ops
// have no gradients.
namespace cnn::layers {

// sum[c] and squares[c] of x and x^2 over N, H, W: the statistics of a FusedConv, for images that
// another op outputs. in: x [N,C,H,W]. out: sum f32 [C], squares f32 [C].
class ChannelSums final : public Op {
 public:
  std::string_view name() const override { return "channel_sums"; }
  std::vector<TensorDesc> infer(std::span<const TensorDesc> in) const override;
  void reference(std::span<const TensorView> in, std::span<const TensorView> out) const override;
};

// Turns sums over `count` values per channel into the coefficients that normalise them:
//   mean = sum / count, variance = max(0, squares / count - mean^2), r = 1 / sqrt(variance +
//   epsilon), a = gamma r, b = beta - mean a
// so that batch norm is a x + b. The difference loses digits where |mean| is much larger than the
// deviation: an error of 2^-24 (mean / deviation)^2 of the variance, from sums rounded to f32.
// in: sum, squares, gamma, beta, all f32 [C]. out: mean, variance, r, all f32 [C], and a, b of
// `type` [C]: 16-bit convolutions load 16-bit vectors. If `type` is not f32, also a, b f32 [C] with
// their rounded values, for ops that must agree with such convolutions.
class FinishStatistics final : public Op {
 public:
  FinishStatistics(double n, double eps, DataType affine) : count(n), epsilon(eps), type(affine) {}
  std::string_view name() const override { return "finish_statistics"; }
  std::vector<TensorDesc> infer(std::span<const TensorDesc> in) const override;
  void reference(std::span<const TensorView> in, std::span<const TensorView> out) const override;

  double count, epsilon;
  DataType type;
};

// y = min(relu(a x + b + residual), limit) by channel, or without the ReLU. The residual is absent,
// an image, or an image with its own a and b. in: x, a real [C], b like a, then [residual like x]
// or [x2 like x, a2, b2]. out: y like x, [mask of y, see relu_mask.h]. May overwrite either image.
class ScaleBias final : public Op {
 public:
  enum class Residual : std::uint8_t { none, image, normalised };
  ScaleBias(bool with_relu, Residual adds, bool with_mask = false,
            float upper = std::numeric_limits<float>::infinity())
      : relu(with_relu), residual(adds), mask(with_mask), limit(upper) {}
  std::string_view name() const override { return "scale_bias"; }
  std::vector<TensorDesc> infer(std::span<const TensorDesc> in) const override;
  void reference(std::span<const TensorView> in, std::span<const TensorView> out) const override;
  bool may_overwrite(std::size_t input, std::size_t output) const override {
    return output == 0 && (input == 0 || input == 3);
  }

  bool relu;
  Residual residual;
  bool mask;
  float limit;
};

// The last part of a batch norm's gradient, from sums over n = N H W values of each channel:
//   dgamma = r (sum g x - mean sum g), dx = A g + B x + C with
//   A = gamma r,  B = -gamma r^2 dgamma / n,  C = -B mean - A sum g / n
// The difference loses digits where |mean| is much larger than the deviation, as in
// FinishStatistics. in: g, x like g, sum g x, sum g, mean, r, gamma, all f32 [C]. out: dx like g,
// dgamma f32 [C]. May overwrite either image.
class NormBackwardEnd final : public Op {
 public:
  std::string_view name() const override { return "norm_backward_end"; }
  std::vector<TensorDesc> infer(std::span<const TensorDesc> in) const override;
  void reference(std::span<const TensorView> in, std::span<const TensorView> out) const override;
  bool may_overwrite(std::size_t input, std::size_t output) const override {
    return output == 0 && input < 2;
  }
};

}  // namespace cnn::layers
