#include "layers/dense.h"

#include <cmath>
#include <string>

#include "layers/activation.h"
#include "layers/operands.h"

namespace cnn::layers {

namespace {

double product_flops(std::int64_t n, std::int64_t k, std::int64_t m) {
  return 2.0 * static_cast<double>(n) * static_cast<double>(k) * static_cast<double>(m);
}

// Calls visit(index in [N, C, H, W], index in [N, H, W, C]) for every element.
template <class Visit>
void for_each_element(const Dims& d, Visit visit) {
  std::size_t from = 0;
  for (std::int64_t nc = 0; nc < d.n * d.c; ++nc) {
    for (std::int64_t pixel = 0; pixel < d.pixels(); ++pixel) {
      const std::int64_t to = ((nc / d.c) * d.pixels() + pixel) * d.c + nc % d.c;
      visit(from++, static_cast<std::size_t>(to));
    }
  }
}

}  // namespace

std::vector<TensorDesc> Dense::infer(std::span<const TensorDesc> in) const {
  require_count(*this, in, attributes.bias ? 3 : 2);
  require(in[0].shape.rank() == 2 && in[1].shape.rank() == 2 && in[0].shape[1] == in[1].shape[0] &&
              is_real(in[0].type),
          *this, in, "takes x [N, K] and weights [K, M]");
  if (attributes.bias) {
    require(in[2].shape == Shape{in[1].shape[1]}, *this, in, "bias must be [M]");
  }
  return {described({in[0].shape[0], in[1].shape[1]}, in[0].type)};
}

void Dense::reference(std::span<const TensorView> in, std::span<const TensorView> out) const {
  const std::int64_t k_size = in[0].desc.shape[1];
  const std::int64_t m_size = in[1].desc.shape[1];
  const float* x = in[0].as<float>().data();
  const float* w = in[1].as<float>().data();
  float* y = out[0].as<float>().data();
  std::vector<double> row(static_cast<std::size_t>(m_size));
  for (std::int64_t n = 0; n < in[0].desc.shape[0]; ++n) {
    for (std::size_t m = 0; m < row.size(); ++m) {
      row[m] = attributes.bias ? in[2].as<float>()[m] : 0;
    }
    for (std::int64_t k = 0; k < k_size; ++k) {
      for (std::size_t m = 0; m < row.size(); ++m) {
        row[m] +=
            static_cast<double>(x[n * k_size + k]) * w[k * m_size + static_cast<std::int64_t>(m)];
      }
    }
    for (std::size_t m = 0; m < row.size(); ++m) {
      y[n * m_size + static_cast<std::int64_t>(m)] =
          static_cast<float>(attributes.relu && row[m] < 0 ? 0 : row[m]);
    }
  }
}

std::vector<std::optional<Value>> Dense::backward(const Backprop& b) const {
  const Value g = attributes.relu ? emit(ReluBackward(), {*b.grad[0], b.out[0]}) : *b.grad[0];
  std::vector<std::optional<Value>> result(b.in.size());
  // Weights first: forward tensors that only they need are freed before dx takes their bytes.
  const bool bias = attributes.bias && b.wanted[2];
  if (b.wanted[1] || bias) {
    const std::vector<Value> gradients =
        emit_all(DenseBackwardWeights({.bias = bias}), std::vector<Value>{b.in[0], g});
    result[1] = gradients[0];
    if (bias) {
      result[2] = gradients[1];
    }
  }
  if (b.wanted[0]) {
    result[0] = emit(DenseBackwardData(), {g, b.in[1]});
  }
  return result;
}

double Dense::flops(std::span<const TensorDesc> in) const {
  return product_flops(in[0].shape[0], in[1].shape[0], in[1].shape[1]);
}

std::vector<TensorDesc> DenseBackwardData::infer(std::span<const TensorDesc> in) const {
  require_count(*this, in, 2);
  require(in[0].shape.rank() == 2 && in[1].shape.rank() == 2 && in[0].shape[1] == in[1].shape[1],
          *this, in, "takes dy [N, M] and weights [K, M]");
  return {described({in[0].shape[0], in[1].shape[0]}, in[0].type)};
}

void DenseBackwardData::reference(std::span<const TensorView> in,
                                  std::span<const TensorView> out) const {
  const std::int64_t m_size = in[0].desc.shape[1];
  const std::int64_t k_size = in[1].desc.shape[0];
  const float* dy = in[0].as<float>().data();
  const float* w = in[1].as<float>().data();
  float* dx = out[0].as<float>().data();
  for (std::int64_t nk = 0; nk < in[0].desc.shape[0] * k_size; ++nk) {
    double sum = 0;
    for (std::int64_t m = 0; m < m_size; ++m) {
      sum += static_cast<double>(dy[nk / k_size * m_size + m]) * w[nk % k_size * m_size + m];
    }
    dx[nk] = static_cast<float>(sum);
  }
}

double DenseBackwardData::flops(std::span<const TensorDesc> in) const {
  return product_flops(in[0].shape[0], in[1].shape[0], in[1].shape[1]);
}

std::vector<TensorDesc> DenseBackwardWeights::infer(std::span<const TensorDesc> in) const {
  require_count(*this, in, 2);
  require(in[0].shape.rank() == 2 && in[1].shape.rank() == 2 && in[0].shape[0] == in[1].shape[0],
          *this, in, "takes x [N, K] and dy [N, M]");
  std::vector<TensorDesc> result{described({in[0].shape[1], in[1].shape[1]}, DataType::f32)};
  if (attributes.bias) {
    result.push_back(described({in[1].shape[1]}, DataType::f32));
  }
  return result;
}

void DenseBackwardWeights::reference(std::span<const TensorView> in,
                                     std::span<const TensorView> out) const {
  const std::int64_t rows = in[0].desc.shape[0];
  const std::int64_t k_size = in[0].desc.shape[1];
  const std::int64_t m_size = in[1].desc.shape[1];
  const float* x = in[0].as<float>().data();
  const float* dy = in[1].as<float>().data();
  float* dw = out[0].as<float>().data();
  std::vector<double> row(static_cast<std::size_t>(m_size));
  for (std::int64_t k = 0; k < k_size; ++k) {
    row.assign(row.size(), 0);
    for (std::int64_t n = 0; n < rows; ++n) {
      for (std::size_t m = 0; m < row.size(); ++m) {
        row[m] +=
            static_cast<double>(x[n * k_size + k]) * dy[n * m_size + static_cast<std::int64_t>(m)];
      }
    }
    for (std::size_t m = 0; m < row.size(); ++m) {
      dw[k * m_size + static_cast<std::int64_t>(m)] = static_cast<float>(row[m]);
    }
  }
  for (std::int64_t m = 0; attributes.bias && m < m_size; ++m) {
    double sum = 0;
    for (std::int64_t n = 0; n < rows; ++n) {
      sum += dy[n * m_size + m];
    }
    out[1].as<float>()[static_cast<std::size_t>(m)] = static_cast<float>(sum);
  }
}

double DenseBackwardWeights::flops(std::span<const TensorDesc> in) const {
  return product_flops(in[0].shape[0], in[0].shape[1], in[1].shape[1]);
}

std::vector<TensorDesc> Flatten::infer(std::span<const TensorDesc> in) const {
  require_count(*this, in, 1);
  require(in[0].shape.rank() == 4, *this, in, "takes images");
  const Dims d = dims(in[0].shape);
  return {described({d.n, d.pixels() * d.c}, in[0].type)};
}

void Flatten::reference(std::span<const TensorView> in, std::span<const TensorView> out) const {
  const auto x = in[0].as<float>();
  const auto y = out[0].as<float>();
  for_each_element(dims(in[0].desc.shape), [&](std::size_t i, std::size_t j) { y[j] = x[i]; });
}

std::vector<std::optional<Value>> Flatten::backward(const Backprop& b) const {
  return {emit(Unflatten(b.in[0].desc().shape), {*b.grad[0]})};
}

std::vector<TensorDesc> Unflatten::infer(std::span<const TensorDesc> in) const {
  require_count(*this, in, 1);
  const Dims d = dims(image_shape);
  require(in[0].shape == Shape{d.n, d.pixels() * d.c}, *this, in,
          "does not fit images " + to_string(image_shape));
  return {described(image_shape, in[0].type)};
}

void Unflatten::reference(std::span<const TensorView> in, std::span<const TensorView> out) const {
  const auto dy = in[0].as<float>();
  const auto dx = out[0].as<float>();
  for_each_element(dims(image_shape), [&](std::size_t i, std::size_t j) { dx[i] = dy[j]; });
}

namespace {

Initializer initializer_of(const DenseOptions& options, std::int64_t inputs) {
  if (options.glorot) {
    return {Initializer::Kind::uniform, 0,
            std::sqrt(2 / static_cast<double>(inputs + options.units))};
  }
  const double gain = options.relu ? 2 : 1;
  const double stddev = options.stddev.value_or(std::sqrt(gain / static_cast<double>(inputs)));
  return {Initializer::Kind::truncated_normal, 0, stddev};
}

}  // namespace

Value dense(Value x, const DenseOptions& options) {
  Graph& graph = *x.graph;
  const std::string name =
      options.layer.empty() ? graph.unique_name("affine") : graph.scoped_name(options.layer);
  const Shape& rows = x.desc().shape;
  require(rows.rank() == 2, Dense({}), std::span(&x.desc(), 1), name + " takes a matrix");
  const Value weights = graph.parameter(name + "/" + std::string(options.weights),
                                        described({rows[1], options.units}, DataType::f32),
                                        {.initializer = initializer_of(options, rows[1])});
  const Value biases = graph.parameter(
      name + "/" + std::string(options.biases), described({options.units}, DataType::f32),
      {.initializer = {Initializer::Kind::constant, options.bias_value, 0}});
  const Value y = emit(Dense({}), {x, weights, biases});
  return options.relu ? relu(y) : y;
}

Value flatten(Value x) { return x.desc().shape.rank() == 2 ? x : emit(Flatten(), {x}); }

}  // namespace cnn::layers
