#include "layers/lrn.h"

#include <algorithm>
#include <cmath>

#include "layers/operands.h"

namespace cnn::layers {

namespace {

// Calls f(index) for every neighbour of an element, itself included.
struct AcrossChannels {
  Dims d;
  std::int64_t radius;

  template <class Visit>
  void operator()(std::int64_t i, const Visit& visit) const {
    const std::int64_t c = i / d.pixels() % d.c;
    const std::int64_t last = std::min(c + radius, d.c - 1);
    for (std::int64_t other = std::max<std::int64_t>(c - radius, 0); other <= last; ++other) {
      visit(static_cast<std::size_t>(i + (other - c) * d.pixels()));
    }
  }
};

struct WithinChannel {
  Dims d;
  std::int64_t radius;

  template <class Visit>
  void operator()(std::int64_t i, const Visit& visit) const {
    const std::int64_t row = i / d.w % d.h, column = i % d.w;
    const std::int64_t left = std::max<std::int64_t>(column - radius, 0);
    const std::int64_t right = std::min(column + radius, d.w - 1);
    const std::int64_t bottom = std::min(row + radius, d.h - 1);
    for (std::int64_t h = std::max<std::int64_t>(row - radius, 0); h <= bottom; ++h) {
      for (std::int64_t w = left; w <= right; ++w) {
        visit(static_cast<std::size_t>(i + (h - row) * d.w + w - column));
      }
    }
  }
};

// Returns s = bias + alpha * sum of squares, for every element.
template <class Neighbours>
std::vector<double> bases(const LrnAttributes& a, const Neighbours& neighbours,
                          std::span<const float> x) {
  std::vector<double> s(x.size());
  for (std::size_t i = 0; i < s.size(); ++i) {
    double sum = 0;
    neighbours(static_cast<std::int64_t>(i),
               [&](std::size_t k) { sum += static_cast<double>(x[k]) * x[k]; });
    s[i] = a.bias + a.alpha * sum;
  }
  return s;
}

template <class Neighbours>
void normalise(const LrnAttributes& a, std::span<const TensorView> in,
               std::span<const TensorView> out) {
  const auto x = in[0].as<float>();
  const auto y = out[0].as<float>();
  const std::vector<double> s = bases(a, Neighbours{dims(in[0].desc.shape), a.radius}, x);
  for (std::size_t i = 0; i < y.size(); ++i) {
    y[i] = static_cast<float>(x[i] * std::pow(s[i], -a.beta));
  }
}

template <class Neighbours>
void differentiate(const LrnAttributes& a, std::span<const TensorView> in,
                   std::span<const TensorView> out) {
  const Neighbours neighbours{dims(in[0].desc.shape), a.radius};
  const auto x = in[0].as<float>();
  const auto dy = in[1].as<float>();
  const auto dx = out[0].as<float>();
  const std::vector<double> s = bases(a, neighbours, x);
  for (std::size_t i = 0; i < dx.size(); ++i) {
    double sum = 0;
    neighbours(static_cast<std::int64_t>(i),
               [&](std::size_t k) { sum += dy[k] * x[k] * std::pow(s[k], -a.beta - 1); });
    dx[i] = static_cast<float>(dy[i] * std::pow(s[i], -a.beta) - 2 * a.alpha * a.beta * x[i] * sum);
  }
}

std::vector<TensorDesc> infer_forward(const Op& op, std::span<const TensorDesc> in) {
  require_count(op, in, 1);
  require(in[0].shape.rank() == 4 && is_real(in[0].type), op, in, "takes real images");
  return {described(in[0].shape, in[0].type)};
}

std::vector<TensorDesc> infer_backward(const Op& op, std::span<const TensorDesc> in) {
  require_count(op, in, 2);
  require(in[0].shape.rank() == 4 && in[1].shape == in[0].shape && in[1].type == in[0].type, op, in,
          "takes x and dy alike");
  return {described(in[0].shape, in[0].type)};
}

}  // namespace

std::vector<TensorDesc> Lrn::infer(std::span<const TensorDesc> in) const {
  return infer_forward(*this, in);
}
std::vector<TensorDesc> WithinLrn::infer(std::span<const TensorDesc> in) const {
  return infer_forward(*this, in);
}
std::vector<TensorDesc> LrnBackward::infer(std::span<const TensorDesc> in) const {
  return infer_backward(*this, in);
}
std::vector<TensorDesc> WithinLrnBackward::infer(std::span<const TensorDesc> in) const {
  return infer_backward(*this, in);
}

void Lrn::reference(std::span<const TensorView> in, std::span<const TensorView> out) const {
  normalise<AcrossChannels>(attributes, in, out);
}
void WithinLrn::reference(std::span<const TensorView> in, std::span<const TensorView> out) const {
  normalise<WithinChannel>(attributes, in, out);
}
void LrnBackward::reference(std::span<const TensorView> in, std::span<const TensorView> out) const {
  differentiate<AcrossChannels>(attributes, in, out);
}
void WithinLrnBackward::reference(std::span<const TensorView> in,
                                  std::span<const TensorView> out) const {
  differentiate<WithinChannel>(attributes, in, out);
}

std::vector<std::optional<Value>> Lrn::backward(const Backprop& b) const {
  return {emit(LrnBackward(attributes), {b.in[0], *b.grad[0]})};
}
std::vector<std::optional<Value>> WithinLrn::backward(const Backprop& b) const {
  return {emit(WithinLrnBackward(attributes), {b.in[0], *b.grad[0]})};
}

Value lrn(Value x, const LrnAttributes& attributes) { return emit(Lrn(attributes), {x}); }

Value lrn_within(Value x, const LrnAttributes& attributes) {
  return emit(WithinLrn(attributes), {x});
}

}  // namespace cnn::layers
