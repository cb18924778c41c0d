#pragma once

#include <limits>

#include "runtime/graph.h"
#include "runtime/op.h"

namespace cnn::layers {

// y = min(max(x, 0), limit); limit is infinity for ReLU, 6 for ReLU6. in: x. out: y.
class Relu final : public Op {
 public:
  explicit Relu(float upper = std::numeric_limits<float>::infinity()) : limit(upper) {}
  std::string_view name() const override { return "relu"; }
  std::vector<TensorDesc> infer(std::span<const TensorDesc> in) const override;
  void reference(std::span<const TensorView> in, std::span<const TensorView> out) const override;
  std::vector<std::optional<Value>> backward(const Backprop& backprop) const override;
  bool may_overwrite(std::size_t /*input*/, std::size_t output) const override {
    return output == 0;
  }

  float limit;
};

// dx = dy where 0 < y < limit, else 0 x dy (layers/gate.h). in: dy, y (output of Relu or a fusion).
class ReluBackward final : public Op {
 public:
  explicit ReluBackward(float upper = std::numeric_limits<float>::infinity()) : limit(upper) {}
  std::string_view name() const override { return "relu_backward"; }
  std::vector<TensorDesc> infer(std::span<const TensorDesc> in) const override;
  void reference(std::span<const TensorView> in, std::span<const TensorView> out) const override;
  bool may_overwrite(std::size_t input, std::size_t output) const override {
    return input == 0 && output == 0;
  }

  float limit;
};

Value relu(Value x);
Value relu6(Value x);

}  // namespace cnn::layers
