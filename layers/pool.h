#pragma once

#include "layers/window.h"
#include "runtime/graph.h"
#include "runtime/op.h"

namespace cnn::layers {

// y = max of the window: padding never wins, a NaN does. in: x [N,C,H,W]. out: y [N,C,P,Q]; with
// indices also u8 [N,C,P,Q]: row * kernel_w + column of the first maximum in the padded window.
class MaxPool final : public Op {
 public:
  MaxPool(Window w, bool with_indices) : window(w), indices(with_indices) {}
  std::string_view name() const override { return "max_pool"; }
  std::vector<TensorDesc> infer(std::span<const TensorDesc> in) const override;
  void reference(std::span<const TensorView> in, std::span<const TensorView> out) const override;
  std::vector<std::optional<Value>> backward(const Backprop& backprop) const override;

  Window window;
  bool indices;
};

// in: dy [N,C,P,Q], indices u8 [N,C,P,Q]. out: dx [N,C,H,W].
class MaxPoolBackward final : public Op {
 public:
  MaxPoolBackward(Window w, Shape x) : window(w), x_shape(x) {}
  std::string_view name() const override { return "max_pool_backward"; }
  std::vector<TensorDesc> infer(std::span<const TensorDesc> in) const override;
  void reference(std::span<const TensorView> in, std::span<const TensorView> out) const override;

  Window window;
  Shape x_shape;
};

// y = mean over the pixels of the window that lie inside the image. in: x. out: y [N,C,P,Q].
class AveragePool final : public Op {
 public:
  explicit AveragePool(Window w) : window(w) {}
  std::string_view name() const override { return "average_pool"; }
  std::vector<TensorDesc> infer(std::span<const TensorDesc> in) const override;
  void reference(std::span<const TensorView> in, std::span<const TensorView> out) const override;
  std::vector<std::optional<Value>> backward(const Backprop& backprop) const override;

  Window window;
};

// in: dy [N,C,P,Q]. out: dx [N,C,H,W].
class AveragePoolBackward final : public Op {
 public:
  AveragePoolBackward(Window w, Shape x) : window(w), x_shape(x) {}
  std::string_view name() const override { return "average_pool_backward"; }
  std::vector<TensorDesc> infer(std::span<const TensorDesc> in) const override;
  void reference(std::span<const TensorView> in, std::span<const TensorView> out) const override;

  Window window;
  Shape x_shape;
};

// Mean over all pixels: [N,C,H,W] -> [N,C].
class SpatialMean final : public Op {
 public:
  std::string_view name() const override { return "spatial_mean"; }
  std::vector<TensorDesc> infer(std::span<const TensorDesc> in) const override;
  void reference(std::span<const TensorView> in, std::span<const TensorView> out) const override;
  std::vector<std::optional<Value>> backward(const Backprop& backprop) const override;
};

// in: dy [N,C]. out: dx [N,C,H,W].
class SpatialMeanBackward final : public Op {
 public:
  explicit SpatialMeanBackward(Shape x) : x_shape(x) {}
  std::string_view name() const override { return "spatial_mean_backward"; }
  std::vector<TensorDesc> infer(std::span<const TensorDesc> in) const override;
  void reference(std::span<const TensorView> in, std::span<const TensorView> out) const override;

  Shape x_shape;
};

struct PoolOptions {
  std::int64_t kernel = 2;
  std::int64_t stride = 2;
  Padding padding = Padding::valid;
};

Value max_pool(Value x, const PoolOptions& options);  // indices only in training graphs
Value average_pool(Value x, const PoolOptions& options);
Value spatial_mean(Value x);

}  // namespace cnn::layers
