#pragma once

#include <optional>

#include "layers/window.h"
#include "runtime/graph.h"
#include "runtime/op.h"

namespace cnn::layers {

struct ConvAttributes {
  Window window;
  bool depthwise = false;  // one filter per channel: weights [C, 1, kh, kw], O = C
  bool bias = false;
  bool residual = false;  // adds a tensor of the output's shape before the activation
  bool relu = false;
};

// y[n,o,p,q] = relu(sum_{c,i,j} w[o,c,i,j] x[n,c,p*sh+i-top,q*sw+j-left] + bias[o] +
// residual[n,o,p,q]) in: x [N,C,H,W], w [O,C,kh,kw] (f32; rounded to x's type where that is
// narrower), then, where the attributes say so, bias f32 [O] and residual [N,O,P,Q]. out: y
// [N,O,P,Q] of x's type; sums in f32.
class Conv2d final : public Op {
 public:
  explicit Conv2d(ConvAttributes a) : attributes(a) {}
  std::string_view name() const override { return "conv"; }
  std::vector<TensorDesc> infer(std::span<const TensorDesc> in) const override;
  void reference(std::span<const TensorView> in, std::span<const TensorView> out) const override;
  // With relu, a ReluBackward node gates the incoming gradient first; its output is the gradient of
  // the residual.
  std::vector<std::optional<Value>> backward(const Backprop& backprop) const override;
  double flops(std::span<const TensorDesc> in) const override;

  ConvAttributes attributes;
};

// d loss / d x of a Conv2d. in: dy [N,O,P,Q], w as above. out: dx of shape x and dy's type.
class Conv2dBackwardData final : public Op {
 public:
  Conv2dBackwardData(ConvAttributes a, Shape x) : attributes(a), x_shape(x) {}
  std::string_view name() const override { return "conv_backward_data"; }
  std::vector<TensorDesc> infer(std::span<const TensorDesc> in) const override;
  void reference(std::span<const TensorView> in, std::span<const TensorView> out) const override;
  double flops(std::span<const TensorDesc> in) const override;

  ConvAttributes attributes;
  Shape x_shape;
};

// d loss / d w (and bias) of a Conv2d. in: x, dy. out: dw f32 of shape w; with bias also dbias f32
// [O].
class Conv2dBackwardWeights final : public Op {
 public:
  Conv2dBackwardWeights(ConvAttributes a, Shape w) : attributes(a), w_shape(w) {}
  std::string_view name() const override { return "conv_backward_weights"; }
  std::vector<TensorDesc> infer(std::span<const TensorDesc> in) const override;
  void reference(std::span<const TensorView> in, std::span<const TensorView> out) const override;
  double flops(std::span<const TensorDesc> in) const override;
  // The gradient of a bias sums dy, which the product reads too.
  std::size_t reread_bytes(std::span<const TensorDesc> in) const override {
    return attributes.bias ? in[1].bytes() : 0;
  }

  ConvAttributes attributes;
  Shape w_shape;
};

// Options of a convolution layer. Without stddev: variance scaling of fan-in, truncated (stddev
// sqrt(1 / fan_in) / 0.8796...).
struct ConvOptions {
  std::int64_t filters = 0;
  std::int64_t kernel = 1;  // height and width, unless kernel_h, kernel_w override them
  std::int64_t kernel_h = 0, kernel_w = 0;
  std::int64_t stride = 1;
  Padding padding = Padding::same;
  bool bias = true;
  bool relu = true;  // as a separate Relu node: fusion is a later pass
  bool depthwise = false;
  std::optional<double> stddev;
  double bias_value = 0;
  bool glorot = false;     // uniform weights of variance 2 / (inputs + outputs of a pixel)
  std::string_view layer;  // name below the graph's scope; empty: "conv<N>"
  std::string_view weights = "conv2d/kernel";  // name of the weights below the layer
};

// Appends a layer "conv<N>" with parameters "conv<N>/conv2d/kernel" (saved as HWIO) and
// "conv<N>/biases", or with the names in the options.
Value conv(Value x, const ConvOptions& options);

}  // namespace cnn::layers
