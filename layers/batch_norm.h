#pragma once

#include <cstddef>
#include <limits>
#include <string>
#include <vector>

#include "layers/conv.h"
#include "runtime/graph.h"
#include "runtime/op.h"

namespace cnn::layers {

struct BatchNormAttributes {
  double epsilon = 1e-3;
  bool scale = false;  // has a gamma
  bool relu = false;
  float limit = std::numeric_limits<float>::infinity();  // of a ReLU without residual: 6 for ReLU6
  bool residual = false;  // adds a tensor of x's shape before the activation
  bool mask = false;      // training with relu and residual: outputs the ReLU mask for the gradient
  double decay = 0.999;   // of the moving averages, for append_moving_averages
  std::string variables;  // prefix of the layer's variables: "v/cg/conv0/batchnorm0/"

  bool is_limited() const { return limit < std::numeric_limits<float>::infinity(); }
};

// The positions of a norm's vectors among its inputs: after x, or after the weights that the norm
// is folded into.
struct NormOperandIndices {
  explicit NormOperandIndices(bool scale) : beta(scale ? 2 : 1) {}
  std::size_t gamma = 1;  // with scale only
  std::size_t beta;
  std::size_t mean = beta + 1, variance = beta + 2;  // if they are inputs
};

// Training form. With m, v the mean and biased variance of x over N, H, W:
//   y = min(relu(gamma (x - m) / sqrt(v + epsilon) + beta + residual), limit)
// in: x [N,C,H,W], [gamma f32 [C]], beta f32 [C], [residual]. out: y, m f32 [C], v f32 [C], [mask
// of y, see relu_mask.h]. Pure: the running statistics are updated by a MovingAverage node. y may
// overwrite x or the residual.
class BatchNorm final : public Op {
 public:
  explicit BatchNorm(BatchNormAttributes a) : attributes(std::move(a)) {}
  std::string_view name() const override { return "batch_norm"; }
  std::vector<TensorDesc> infer(std::span<const TensorDesc> in) const override;
  void reference(std::span<const TensorView> in, std::span<const TensorView> out) const override;
  std::vector<std::optional<Value>> backward(const Backprop& backprop) const override;
  bool may_overwrite(std::size_t input, std::size_t output) const override;
  // The moments need all of x before its first element can be normalised.
  std::size_t reread_bytes(std::span<const TensorDesc> in) const override { return in[0].bytes(); }

  BatchNormAttributes attributes;
};

// With g = dy, or with relu g = dy where the output was between 0 and the limit, n = N H W, xhat =
// (x - m) / sqrt(v + e):
//   dbeta = sum g, dgamma = sum g xhat, dx = gamma / sqrt(v + e) (g - dbeta / n - xhat dgamma / n)
// in: x, [gamma], beta, m, v, dy, [dy2 if joined: the gradient of the output is then dy + dy2,
// summed in f32], and with relu and residual also y or its mask (without a residual the op
// recomputes the output from x). out: dx, dbeta, [dgamma if scale], [g as gradient of the residual
// if relu and residual]. dx may overwrite x, dy or dy2, and g may overwrite dy or dy2: the pass
// over x for the sums writes g.
class BatchNormBackward final : public Op {
 public:
  explicit BatchNormBackward(BatchNormAttributes a, bool two_gradients = false)
      : attributes(std::move(a)), joined(two_gradients) {}
  // Returns whether the op reads the ReLU's gate from y or its mask, and outputs g.
  bool passes_gradient() const { return attributes.relu && attributes.residual; }
  // Returns the index of operand dy; dy2 follows it.
  std::size_t index_of_dy() const { return NormOperandIndices(attributes.scale).variance + 1; }
  std::string_view name() const override { return "batch_norm_backward"; }
  std::vector<TensorDesc> infer(std::span<const TensorDesc> in) const override;
  void reference(std::span<const TensorView> in, std::span<const TensorView> out) const override;
  bool may_overwrite(std::size_t input, std::size_t output) const override;
  std::size_t reread_bytes(std::span<const TensorDesc> in) const override;

  BatchNormAttributes attributes;
  bool joined;
};

// Inference form: m and v are the moving averages. in: x, [gamma], beta, m, v, [residual]. out: y.
class BatchNormInference final : public Op {
 public:
  explicit BatchNormInference(BatchNormAttributes a) : attributes(std::move(a)) {}
  std::string_view name() const override { return "batch_norm_inference"; }
  std::vector<TensorDesc> infer(std::span<const TensorDesc> in) const override;
  void reference(std::span<const TensorView> in, std::span<const TensorView> out) const override;
  bool may_overwrite(std::size_t input, std::size_t output) const override {
    return input == 0 && output == 0;
  }

  BatchNormAttributes attributes;
};

// Folds an inference batch norm into the convolution before it: w' = w s, b' = (bias - m) s + beta
// with s[o] = gamma[o] / sqrt(v[o] + epsilon). in: w [O,...] f32, [gamma], beta, m, v, [bias]. out:
// w' f32, b' f32 [O].
class FoldBatchNorm final : public Op {
 public:
  FoldBatchNorm(double eps, bool has_scale, bool has_bias)
      : epsilon(eps), scale(has_scale), bias(has_bias) {}
  std::string_view name() const override { return "fold_batch_norm"; }
  std::vector<TensorDesc> infer(std::span<const TensorDesc> in) const override;
  void reference(std::span<const TensorView> in, std::span<const TensorView> out) const override;

  double epsilon;
  bool scale, bias;
};

// moving = decay * moving + (1 - decay) * batch for every batch norm of the network at once; the
// batch variance is the unbiased one, v n / (n - 1). in: for each layer moving_mean (mutated),
// moving_variance (mutated), m, v, all f32 [C]. No output.
class MovingAverage final : public Op {
 public:
  struct Layer {
    double decay = 0;
    double count = 0;  // n = N H W
  };
  explicit MovingAverage(std::vector<Layer> l) : layers(std::move(l)) {}
  std::string_view name() const override { return "moving_average"; }
  std::vector<TensorDesc> infer(std::span<const TensorDesc> in) const override;
  void reference(std::span<const TensorView> in, std::span<const TensorView> out) const override;
  bool mutates(std::size_t input) const override { return input % 4 < 2; }

  std::vector<Layer> layers;
};

struct BatchNormOptions {
  double decay = 0.999;
  double epsilon = 1e-3;
  bool scale = false;
  bool decay_parameters = false;  // gamma and beta take part in the L2 term
  std::string_view layer;         // name below the graph's scope; empty: "batchnorm<N>"
};

// Appends a layer "batchnorm<N>" with gamma (if scale), beta, moving_mean, moving_variance, created
// in that order. Training graphs get BatchNorm, others BatchNormInference.
Value batch_norm(Value x, const BatchNormOptions& options);

// Appends a convolution without bias, a batch norm named below it ("conv3/batchnorm3/beta"), and a
// ReLU if options.relu.
Value conv_bn(Value x, ConvOptions options, const BatchNormOptions& norm);

// Appends the single MovingAverage node of a training graph; nothing if it has no BatchNorm.
void append_moving_averages(Graph& graph);

}  // namespace cnn::layers
