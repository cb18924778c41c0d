#pragma once

#include "runtime/graph.h"
#include "runtime/op.h"

// A batch norm in pieces, for where a convolution does the rest (see fused_conv.h). Like the fused
// convolutions they have no gradients of their own.
namespace cnn::layers {

// sum[c] and squares[c] of x and x^2 over N, H, W: what a FusedConv adds to its output, for images
// that no such convolution makes. in: x [N,C,H,W]. out: sum f32 [C], squares f32 [C].
class ChannelSums final : public Op {
 public:
  std::string_view name() const override { return "channel_sums"; }
  std::vector<TensorDesc> infer(std::span<const TensorDesc> in) const override;
  void reference(std::span<const TensorView> in, std::span<const TensorView> out) const override;
};

// From sums over `count` values per channel to what normalises them:
//   mean = sum / count, variance = max(0, squares / count - mean^2), r = 1 / sqrt(variance +
//   epsilon), a = gamma r, b = beta - mean a
// so that batch norm is a x + b. The difference loses digits where |mean| is much larger than the
// deviation: an error of 2^-24 (mean / deviation)^2 of the variance, from sums rounded to f32.
// in: sum, squares, gamma, beta, all f32 [C]. out: mean, variance, r, all f32 [C], and a, b of
// `type` [C]: convolutions of 16 bits load 16-bit vectors. Where that is not f32 also a, b f32 [C]
// with the values that they have after rounding, for those who must agree with such convolutions.
class FinishStatistics final : public Op {
 public:
  FinishStatistics(double n, double eps, DataType affine) : count(n), epsilon(eps), type(affine) {}
  std::string_view name() const override { return "finish_statistics"; }
  std::vector<TensorDesc> infer(std::span<const TensorDesc> in) const override;
  void reference(std::span<const TensorView> in, std::span<const TensorView> out) const override;

  double count, epsilon;
  DataType type;
};

// y = relu(a x + b + rest) by channel, or without the ReLU, where rest is nothing, an image, or an
// image normalised likewise. in: x, a real [C], b like a, then [residual like x] or [x2 like x, a2,
// b2]. out: y like x, [mask of y, see relu_mask.h]. May overwrite either image.
class ScaleBias final : public Op {
 public:
  enum class Rest : std::uint8_t { nothing, image, normalised };
  ScaleBias(bool with_relu, Rest adds, bool with_mask = false)
      : relu(with_relu), rest(adds), mask(with_mask) {}
  std::string_view name() const override { return "scale_bias"; }
  std::vector<TensorDesc> infer(std::span<const TensorDesc> in) const override;
  void reference(std::span<const TensorView> in, std::span<const TensorView> out) const override;
  bool may_overwrite(std::size_t input, std::size_t output) const override {
    return output == 0 && (input == 0 || input == 3);
  }

  bool relu;
  Rest rest;
  bool mask;
};

// The end of a batch norm's gradient, from sums over n = N H W values of each channel:
//   dgamma = r (sum g x - mean sum g), dx = A g + B x + C with
//   A = gamma r,  B = -gamma r^2 dgamma / n,  C = -B mean - A sum g / n
// The difference loses digits where |mean| is much larger than the deviation, as FinishStatistics
// does. in: g, x like g, sum g x, sum g, mean, r, gamma, all f32 [C]. out: dx like g, dgamma f32
// [C]. May overwrite either image.
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
