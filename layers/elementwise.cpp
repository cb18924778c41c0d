#include "layers/elementwise.h"

#include <algorithm>

#include "layers/activation.h"
#include "layers/operands.h"

namespace cnn::layers {

std::vector<TensorDesc> Add::infer(std::span<const TensorDesc> in) const {
  require(in.size() >= 2, *this, in, "takes two or more operands");
  for (const TensorDesc& desc : in) {
    require(desc.shape == in[0].shape && desc.type == in[0].type, *this, in,
            "takes operands of one shape and type");
  }
  return {described(in[0].shape, in[0].type)};
}

void Add::reference(std::span<const TensorView> in, std::span<const TensorView> out) const {
  const auto y = out[0].as<float>();
  for (std::size_t i = 0; i < y.size(); ++i) {
    float sum = in[0].as<float>()[i];
    for (const TensorView& x : in.subspan(1)) {
      sum += x.as<float>()[i];
    }
    y[i] = relu && sum < 0 ? 0 : sum;
  }
}

std::vector<std::optional<Value>> Add::backward(const Backprop& b) const {
  const Value g = relu ? emit(ReluBackward(), {*b.grad[0], b.out[0]}) : *b.grad[0];
  return std::vector<std::optional<Value>>(b.in.size(), g);
}

std::vector<TensorDesc> Scale::infer(std::span<const TensorDesc> in) const {
  require_count(*this, in, 1);
  return {described(in[0].shape, in[0].type)};
}

void Scale::reference(std::span<const TensorView> in, std::span<const TensorView> out) const {
  std::ranges::transform(in[0].as<float>(), out[0].as<float>().begin(),
                         [this](float x) { return factor * x; });
}

std::vector<std::optional<Value>> Scale::backward(const Backprop& b) const {
  return {emit(Scale(factor), {*b.grad[0]})};
}

std::vector<TensorDesc> Fill::infer(std::span<const TensorDesc> in) const {
  require_count(*this, in, 0);
  return {described(shape, DataType::f32)};
}

void Fill::reference(std::span<const TensorView> /*in*/, std::span<const TensorView> out) const {
  std::ranges::fill(out[0].as<float>(), value);
}

std::vector<TensorDesc> Convert::infer(std::span<const TensorDesc> in) const {
  require_count(*this, in, 1);
  require(is_real(in[0].type) && is_real(type), *this, in, "takes and makes real types");
  return {described(in[0].shape, type)};
}

// Plain operands are f32 for every real type: the caller of these loops rounds to the stored types.
void Convert::reference(std::span<const TensorView> in, std::span<const TensorView> out) const {
  std::ranges::copy(in[0].as<float>(), out[0].as<float>().begin());
}

std::vector<std::optional<Value>> Convert::backward(const Backprop& b) const {
  return {emit(Convert(b.in[0].desc().type), {*b.grad[0]})};
}

std::vector<TensorDesc> Normalise::infer(std::span<const TensorDesc> in) const {
  require_count(*this, in, 1);
  require(in[0].type == DataType::u8 || in[0].type == DataType::f32, *this, in,
          "takes u8 or f32 pixels");
  require(is_real(type), *this, in, "makes a real type");
  return {described(in[0].shape, type)};
}

void Normalise::reference(std::span<const TensorView> in, std::span<const TensorView> out) const {
  const auto y = out[0].as<float>();
  const auto map = [&](auto x) {
    for (std::size_t i = 0; i < y.size(); ++i) {
      y[i] = static_cast<float>(x[i]) * scale + shift;
    }
  };
  if (in[0].desc.type == DataType::u8) {
    map(in[0].as<std::uint8_t>());
  } else {
    map(in[0].as<float>());
  }
}

Value add(Value a, Value b) { return emit(Add(), {a, b}); }
Value scale(Value x, float factor) { return emit(Scale(factor), {x}); }

Value fill(Graph& graph, Shape shape, float value) {
  return graph.append(std::make_shared<const Fill>(shape, value), {}).front();
}

Value convert(Value x, DataType type) {
  return x.desc().type == type ? x : emit(Convert(type), {x});
}

}  // namespace cnn::layers
