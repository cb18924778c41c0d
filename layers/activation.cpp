#include "layers/activation.h"

#include "layers/gate.h"
#include "layers/operands.h"

namespace cnn::layers {

std::vector<TensorDesc> Relu::infer(std::span<const TensorDesc> in) const {
  require_count(*this, in, 1);
  require(is_real(in[0].type), *this, in, "takes a real tensor");
  return {described(in[0].shape, in[0].type)};
}

void Relu::reference(std::span<const TensorView> in, std::span<const TensorView> out) const {
  const auto x = in[0].as<float>();
  const auto y = out[0].as<float>();
  for (std::size_t i = 0; i < y.size(); ++i) {
    // The comparison keeps a NaN.
    const float positive = x[i] < 0 ? 0 : x[i];
    y[i] = positive > limit ? limit : positive;
  }
}

std::vector<std::optional<Value>> Relu::backward(const Backprop& b) const {
  return {emit(ReluBackward(limit), {*b.grad[0], b.out[0]})};
}

std::vector<TensorDesc> ReluBackward::infer(std::span<const TensorDesc> in) const {
  require_count(*this, in, 2);
  require(in[0].shape == in[1].shape && in[0].type == in[1].type, *this, in,
          "takes dy and y of one shape and type");
  return {described(in[0].shape, in[0].type)};
}

void ReluBackward::reference(std::span<const TensorView> in,
                             std::span<const TensorView> out) const {
  const auto dy = in[0].as<float>();
  const auto y = in[1].as<float>();
  const auto dx = out[0].as<float>();
  for (std::size_t i = 0; i < dx.size(); ++i) {
    dx[i] = gated(dy[i], is_open(y[i], limit));
  }
}

Value relu(Value x) { return emit(Relu(), {x}); }
Value relu6(Value x) { return emit(Relu(6), {x}); }

}  // namespace cnn::layers
