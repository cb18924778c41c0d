#include "layers/lrn.h"

#include <algorithm>
#include <cmath>

#include "layers/operands.h"

namespace cnn::layers {

namespace {

// Sum of f(index) over the neighbours of element i, which are `pixels` apart, itself included.
template <class Term>
double sum_of_neighbours(const Dims& d, std::int64_t radius, std::int64_t i, Term term) {
  const std::int64_t c = i / d.pixels() % d.c;
  double sum = 0;
  for (std::int64_t other = std::max<std::int64_t>(c - radius, 0);
       other <= std::min(c + radius, d.c - 1); ++other) {
    sum += term(static_cast<std::size_t>(i + (other - c) * d.pixels()));
  }
  return sum;
}

// s = bias + alpha * sum of squares, for every element.
std::vector<double> bases(const LrnAttributes& a, const Dims& d, std::span<const float> x) {
  std::vector<double> s(x.size());
  for (std::size_t i = 0; i < s.size(); ++i) {
    s[i] = a.bias + a.alpha * sum_of_neighbours(
                                  d, a.radius, static_cast<std::int64_t>(i),
                                  [&](std::size_t k) { return static_cast<double>(x[k]) * x[k]; });
  }
  return s;
}

}  // namespace

std::vector<TensorDesc> Lrn::infer(std::span<const TensorDesc> in) const {
  require_count(*this, in, 1);
  require(in[0].shape.rank() == 4 && is_real(in[0].type), *this, in, "takes real images");
  return {described(in[0].shape, in[0].type)};
}

void Lrn::reference(std::span<const TensorView> in, std::span<const TensorView> out) const {
  const auto x = in[0].as<float>();
  const auto y = out[0].as<float>();
  const std::vector<double> s = bases(attributes, dims(in[0].desc.shape), x);
  for (std::size_t i = 0; i < y.size(); ++i) {
    y[i] = static_cast<float>(x[i] * std::pow(s[i], -attributes.beta));
  }
}

std::vector<std::optional<Value>> Lrn::backward(const Backprop& b) const {
  return {emit(LrnBackward(attributes), {b.in[0], *b.grad[0]})};
}

std::vector<TensorDesc> LrnBackward::infer(std::span<const TensorDesc> in) const {
  require_count(*this, in, 2);
  require(in[0].shape.rank() == 4 && in[1].shape == in[0].shape && in[1].type == in[0].type, *this,
          in, "takes x and dy alike");
  return {described(in[0].shape, in[0].type)};
}

void LrnBackward::reference(std::span<const TensorView> in, std::span<const TensorView> out) const {
  const Dims d = dims(in[0].desc.shape);
  const auto x = in[0].as<float>();
  const auto dy = in[1].as<float>();
  const auto dx = out[0].as<float>();
  const double beta = attributes.beta;
  const std::vector<double> s = bases(attributes, d, x);
  for (std::size_t i = 0; i < dx.size(); ++i) {
    const double sum =
        sum_of_neighbours(d, attributes.radius, static_cast<std::int64_t>(i),
                          [&](std::size_t k) { return dy[k] * x[k] * std::pow(s[k], -beta - 1); });
    dx[i] = static_cast<float>(dy[i] * std::pow(s[i], -beta) -
                               2 * attributes.alpha * beta * x[i] * sum);
  }
}

Value lrn(Value x, const LrnAttributes& attributes) { return emit(Lrn(attributes), {x}); }

}  // namespace cnn::layers
