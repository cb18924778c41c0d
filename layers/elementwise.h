#pragma once

#include "runtime/graph.h"
#include "runtime/op.h"

namespace cnn::layers {

// y = relu(x0 + x1 + ...), two or more inputs of one shape and type (also scalars). Sums in f32, in
// operand order. For residual joins and sums of gradients.
class Add final : public Op {
 public:
  explicit Add(bool with_relu = false) : relu(with_relu) {}
  std::string_view name() const override { return "add"; }
  std::vector<TensorDesc> infer(std::span<const TensorDesc> in) const override;
  void reference(std::span<const TensorView> in, std::span<const TensorView> out) const override;
  std::vector<std::optional<Value>> backward(const Backprop& backprop) const override;
  bool may_overwrite(std::size_t /*input*/, std::size_t output) const override {
    return output == 0;
  }

  bool relu;
};

// y = factor * x.
class Scale final : public Op {
 public:
  explicit Scale(float by) : factor(by) {}
  std::string_view name() const override { return "scale"; }
  std::vector<TensorDesc> infer(std::span<const TensorDesc> in) const override;
  void reference(std::span<const TensorView> in, std::span<const TensorView> out) const override;
  std::vector<std::optional<Value>> backward(const Backprop& backprop) const override;
  bool may_overwrite(std::size_t /*input*/, std::size_t output) const override {
    return output == 0;
  }

  float factor;
};

// Outputs a tensor filled with one value. No inputs.
class Fill final : public Op {
 public:
  Fill(Shape s, float v) : shape(s), value(v) {}
  std::string_view name() const override { return "fill"; }
  std::vector<TensorDesc> infer(std::span<const TensorDesc> in) const override;
  void reference(std::span<const TensorView> in, std::span<const TensorView> out) const override;

  Shape shape;
  float value;
};

// y = x in another type (and another layout, if the layout pass says so): f32 <-> bf16, f16.
class Convert final : public Op {
 public:
  explicit Convert(DataType to) : type(to) {}
  std::string_view name() const override { return "convert"; }
  std::vector<TensorDesc> infer(std::span<const TensorDesc> in) const override;
  void reference(std::span<const TensorView> in, std::span<const TensorView> out) const override;
  std::vector<std::optional<Value>> backward(const Backprop& backprop) const override;

  DataType type;
};

// y = x * scale + shift, in the given type; x is u8 or f32. The first node on real images.
class Normalise final : public Op {
 public:
  Normalise(float s, float b, DataType to) : scale(s), shift(b), type(to) {}
  std::string_view name() const override { return "normalise"; }
  std::vector<TensorDesc> infer(std::span<const TensorDesc> in) const override;
  void reference(std::span<const TensorView> in, std::span<const TensorView> out) const override;

  float scale, shift;
  DataType type;
};

Value add(Value a, Value b);
Value scale(Value x, float factor);
Value fill(Graph& graph, Shape shape, float value);
Value convert(Value x, DataType type);  // x itself if it has that type

}  // namespace cnn::layers
