#pragma once

#include "layers/window.h"
#include "runtime/graph.h"
#include "runtime/op.h"

// Convolutions fused with the batch norms around them: they normalise their input as they load it
// and sum their output as they store it, so that memory never holds normalised images.
// fuse_convolutions replaces plain convolutions after the gradient pass: fused ones have no
// gradient. Never depthwise, never with a bias.
namespace cnn::layers {

struct FusedConvAttributes {
  Window window;
  bool prologue = false;    // reads relu(a x + b) instead of x
  bool statistics = false;  // also outputs sums of y
};

// y = w * x as in Conv2d, or with a prologue y = w * relu(a[c] x + b[c]), whose padding is zero in
// both cases: it surrounds the normalised image. sum[o] and squares[o] are the sums of y and y^2
// over N, P, Q, taken before or after y is rounded to its type.
// in: x [N,C,H,W], w f32 [O,C,kh,kw], [a real [C], b like a]. out: y [N,O,P,Q] of x's type,
// [sum f32 [O], squares f32 [O]].
class FusedConv final : public Op {
 public:
  explicit FusedConv(FusedConvAttributes a) : attributes(a) {}
  std::string_view name() const override { return "fused_conv"; }
  std::vector<TensorDesc> infer(std::span<const TensorDesc> in) const override;
  void reference(std::span<const TensorView> in, std::span<const TensorView> out) const override;
  double flops(std::span<const TensorDesc> in) const override;

  FusedConvAttributes attributes;
};

// Backward pass through a convolution, and through the ReLU and the sums of the batch norm before
// it. If the forward pass rounded a and b, a norm of mean 0 and r = 1 with gamma = a and beta = b
// gates by bitwise the same numbers, and outputs sum g and sum g x; NormBackwardEnd completes them.
// With d = d loss / d (input of the convolution), which Conv2dBackwardData computes from dy and w,
// xhat = (x - mean) r and r = 1 / sqrt(variance + epsilon):
//   g = d unless gamma xhat + beta < 0, else 0;  dbeta = sum g;  dgamma = sum g xhat
// and with n = N H W the coefficients of d loss / d x = A g + B x + C:
//   A = gamma r,  B = -gamma r^2 dgamma / n,  C = -B mean - A dbeta / n
// Where the output of the ReLU is exactly zero, the gate is open, unlike that of the other ops:
// cuDNN's engines for this operation compare with "less", and both are subgradients.
// in: dy [N,O,P,Q], w f32 [O,C,kh,kw], x [N,C,H,W] of dy's type, mean, r, gamma, beta, all f32 [C].
// out: g like x, dgamma, dbeta, A, B, C, all f32 [C].
class ConvBackwardDataNorm final : public Op {
 public:
  explicit ConvBackwardDataNorm(const Window& w) : window(w) {}
  std::string_view name() const override { return "conv_backward_data_norm"; }
  std::vector<TensorDesc> infer(std::span<const TensorDesc> in) const override;
  void reference(std::span<const TensorView> in, std::span<const TensorView> out) const override;
  double flops(std::span<const TensorDesc> in) const override;

  Window window;
};

// d loss / d w of a FusedConv with prologue. in: x [N,C,H,W], a real [C], b like a, dy [N,O,P,Q] of
// x's type. out: dw f32 of shape w.
class FusedConvBackwardWeights final : public Op {
 public:
  FusedConvBackwardWeights(const Window& around, Shape w) : window(around), w_shape(w) {}
  std::string_view name() const override { return "fused_conv_backward_weights"; }
  std::vector<TensorDesc> infer(std::span<const TensorDesc> in) const override;
  void reference(std::span<const TensorView> in, std::span<const TensorView> out) const override;
  double flops(std::span<const TensorDesc> in) const override;

  Window window;
  Shape w_shape;
};

}  // namespace cnn::layers
