#pragma once

#include <optional>

#include "runtime/graph.h"
#include "runtime/op.h"

namespace cnn::layers {

struct DenseAttributes {
  bool bias = true;
  bool relu = false;
};

// y = relu(x w + bias). in: x [N,K], w f32 [K,M] (rounded to x's type where narrower), bias f32 [M]
// if the attributes say so. out: y [N,M] of x's type.
class Dense final : public Op {
 public:
  explicit Dense(DenseAttributes a) : attributes(a) {}
  std::string_view name() const override { return "dense"; }
  std::vector<TensorDesc> infer(std::span<const TensorDesc> in) const override;
  void reference(std::span<const TensorView> in, std::span<const TensorView> out) const override;
  std::vector<std::optional<Value>> backward(const Backprop& backprop) const override;
  double flops(std::span<const TensorDesc> in) const override;

  DenseAttributes attributes;
};

// dx = dy w^T. in: dy [N,M], w [K,M]. out: dx [N,K] of dy's type.
class DenseBackwardData final : public Op {
 public:
  std::string_view name() const override { return "dense_backward_data"; }
  std::vector<TensorDesc> infer(std::span<const TensorDesc> in) const override;
  void reference(std::span<const TensorView> in, std::span<const TensorView> out) const override;
  double flops(std::span<const TensorDesc> in) const override;
};

// dw = x^T dy, dbias = sum over rows of dy. in: x [N,K], dy [N,M]. out: dw f32 [K,M], dbias f32
// [M].
class DenseBackwardWeights final : public Op {
 public:
  explicit DenseBackwardWeights(DenseAttributes a) : attributes(a) {}
  std::string_view name() const override { return "dense_backward_weights"; }
  std::vector<TensorDesc> infer(std::span<const TensorDesc> in) const override;
  void reference(std::span<const TensorView> in, std::span<const TensorView> out) const override;
  double flops(std::span<const TensorDesc> in) const override;
  // The gradient of a bias sums dy, which the product reads too.
  std::size_t reread_bytes(std::span<const TensorDesc> in) const override {
    return attributes.bias ? in[1].bytes() : 0;
  }

  DenseAttributes attributes;
};

// [N,C,H,W] -> [N, H*W*C], channels fastest, as NHWC networks flatten; Unflatten is the inverse.
class Flatten final : public Op {
 public:
  std::string_view name() const override { return "flatten"; }
  std::vector<TensorDesc> infer(std::span<const TensorDesc> in) const override;
  void reference(std::span<const TensorView> in, std::span<const TensorView> out) const override;
  std::vector<std::optional<Value>> backward(const Backprop& backprop) const override;
};
class Unflatten final : public Op {
 public:
  explicit Unflatten(Shape image) : image_shape(image) {}
  std::string_view name() const override { return "unflatten"; }
  std::vector<TensorDesc> infer(std::span<const TensorDesc> in) const override;
  void reference(std::span<const TensorView> in, std::span<const TensorView> out) const override;

  Shape image_shape;
};

struct DenseOptions {
  std::int64_t units = 0;
  bool relu = true;              // as a separate Relu node: fusion is a later pass
  std::optional<double> stddev;  // unset: sqrt(2 / in) before a ReLU, sqrt(1 / in) without
  double bias_value = 0;
  bool glorot = false;     // uniform weights of variance 2 / (in + out)
  std::string_view layer;  // name below the graph's scope; empty: "affine<N>"
  std::string_view weights = "weights", biases = "biases";  // names below the layer
};

// Appends a layer "affine<N>" with parameters "affine<N>/weights" [in, out] and "affine<N>/biases",
// or with the names in the options.
Value dense(Value x, const DenseOptions& options);
Value flatten(Value x);  // x itself if it has rank 2

}  // namespace cnn::layers
