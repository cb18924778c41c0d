#include "layers/batch_norm.h"

#include <algorithm>
#include <cmath>

#include "layers/activation.h"
#include "layers/gate.h"
#include "layers/operands.h"
#include "layers/relu_mask.h"
#include "runtime/error.h"

namespace cnn::layers {

namespace {

bool is_per_channel(const TensorDesc& desc, const Shape& x) {
  return desc.shape == Shape{x[1]} && desc.type == DataType::f32;
}

// in: x, then `vectors` operands of one value per channel.
void require_vectors(const Op& op, std::span<const TensorDesc> in, std::size_t vectors) {
  require(in[0].shape.rank() == 4 && is_real(in[0].type), op, in, "takes real images");
  for (std::size_t i = 1; i <= vectors; ++i) {
    require(is_per_channel(in[i], in[0].shape), op, in,
            "gamma, beta, mean and variance are f32 [C]");
  }
}

void require_limit(const Op& op, const BatchNormAttributes& a, std::span<const TensorDesc> in) {
  require(!a.is_limited() || (a.relu && !a.residual), op, in,
          "limits only a ReLU without a residual");
}

// y = min(relu(slope x + offset + residual), limit), slope and offset by channel.
struct Affine {
  std::vector<double> slope, offset;
};

Affine affine(const BatchNormAttributes& a, std::span<const TensorView> in,
              std::span<const double> mean, std::span<const double> variance) {
  const NormOperandIndices at(a.scale);
  Affine result;
  for (std::size_t c = 0; c < mean.size(); ++c) {
    const double gamma = a.scale ? in[at.gamma].as<float>()[c] : 1;
    result.slope.push_back(gamma / std::sqrt(variance[c] + a.epsilon));
    result.offset.push_back(in[at.beta].as<float>()[c] - mean[c] * result.slope.back());
  }
  return result;
}

void run_affine(const BatchNormAttributes& a, const Affine& f, std::span<const TensorView> in,
                const TensorView& out) {
  const Dims d = dims(in[0].desc.shape);
  const auto x = in[0].as<float>();
  const auto y = out.as<float>();
  for (std::size_t i = 0; i < y.size(); ++i) {
    const std::size_t c = i / static_cast<std::size_t>(d.pixels()) % static_cast<std::size_t>(d.c);
    const double sum =
        f.slope[c] * x[i] + f.offset[c] + (a.residual ? in.back().as<float>()[i] : 0);
    const double positive = a.relu && sum < 0 ? 0 : sum;
    y[i] = static_cast<float>(positive > a.limit ? a.limit : positive);  // a NaN stays one
  }
}

struct Moments {
  std::vector<double> mean, variance;
};

Moments moments(const TensorView& view) {
  const Dims d = dims(view.desc.shape);
  const auto x = view.as<float>();
  const auto channels = static_cast<std::size_t>(d.c);
  const auto pixels = static_cast<std::size_t>(d.pixels());
  const double count = static_cast<double>(d.n * d.pixels());
  Moments m{std::vector<double>(channels), std::vector<double>(channels)};
  for (std::size_t i = 0; i < x.size(); ++i) {
    m.mean[i / pixels % channels] += x[i] / count;
  }
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double difference = x[i] - m.mean[i / pixels % channels];
    m.variance[i / pixels % channels] += difference * difference / count;
  }
  return m;
}

std::vector<double> widened(const TensorView& view) {
  const auto values = view.as<float>();
  return {values.begin(), values.end()};
}

void narrow(std::span<const double> from, const TensorView& to) {
  std::ranges::transform(from, to.as<float>().begin(),
                         [](double value) { return static_cast<float>(value); });
}

}  // namespace

std::vector<TensorDesc> BatchNorm::infer(std::span<const TensorDesc> in) const {
  require_count(*this, in,
                NormOperandIndices(attributes.scale).mean + (attributes.residual ? 1 : 0));
  require_vectors(*this, in, NormOperandIndices(attributes.scale).beta);
  require(!attributes.residual || (in.back().shape == in[0].shape && in.back().type == in[0].type),
          *this, in, "the residual must be like x");
  require_limit(*this, attributes, in);
  const BatchNormAttributes& a = attributes;
  require(!a.mask || (a.relu && a.residual), *this, in, "masks only a ReLU after a residual");
  const TensorDesc vector = described({in[0].shape[1]}, DataType::f32);
  std::vector<TensorDesc> result{described(in[0].shape, in[0].type), vector, vector};
  if (a.mask) {
    result.push_back(relu_mask_of(in[0].shape));
  }
  return result;
}

void BatchNorm::reference(std::span<const TensorView> in, std::span<const TensorView> out) const {
  const Moments m = moments(in[0]);
  run_affine(attributes, affine(attributes, in, m.mean, m.variance), in, out[0]);
  narrow(m.mean, out[1]);
  narrow(m.variance, out[2]);
  if (attributes.mask) {
    set_relu_mask(out[0], out[3]);
  }
}

std::vector<std::optional<Value>> BatchNorm::backward(const Backprop& b) const {
  const NormOperandIndices at(attributes.scale);
  std::vector<Value> in{b.in[0]};
  if (attributes.scale) {
    in.push_back(b.in[at.gamma]);
  }
  in.insert(in.end(), {b.in[at.beta], b.out[1], b.out[2], *b.grad[0]});
  const BatchNormBackward op(attributes);
  if (op.passes_gradient()) {
    in.push_back(attributes.mask ? b.out[3] : b.out[0]);
  }
  const std::vector<Value> gradients = emit_all(op, in);
  std::vector<std::optional<Value>> result{gradients[0]};
  if (attributes.scale) {
    result.emplace_back(gradients[2]);
  }
  result.emplace_back(gradients[1]);
  if (attributes.residual) {
    result.push_back(op.passes_gradient() ? gradients.back() : *b.grad[0]);
  }
  return result;
}

bool BatchNorm::may_overwrite(std::size_t input, std::size_t output) const {
  const std::size_t residual = NormOperandIndices(attributes.scale).mean;
  return output == 0 && (input == 0 || (attributes.residual && input == residual));
}

std::vector<TensorDesc> BatchNormBackward::infer(std::span<const TensorDesc> in) const {
  require_count(*this, in, index_of_dy() + 1 + (joined ? 1 : 0) + (passes_gradient() ? 1 : 0));
  require_vectors(*this, in, NormOperandIndices(attributes.scale).variance);
  require_limit(*this, attributes, in);
  const bool masked = passes_gradient() && attributes.mask;
  const std::span<const TensorDesc> images = in.subspan(index_of_dy());
  for (const TensorDesc& desc : images.first(images.size() - (masked ? 1 : 0))) {
    require(desc.shape == in[0].shape && desc.type == in[0].type, *this, in,
            "dy, dy2 and y must be like x");
  }
  const TensorDesc mask = relu_mask_of(in[0].shape);
  require(!masked || (in.back().shape == mask.shape && in.back().type == mask.type), *this, in,
          "the mask must have one bit for each element of x");
  const TensorDesc vector = described({in[0].shape[1]}, DataType::f32);
  const TensorDesc image = described(in[0].shape, in[0].type);
  std::vector<TensorDesc> result{image, vector};
  if (attributes.scale) {
    result.push_back(vector);
  }
  if (passes_gradient()) {
    result.push_back(image);
  }
  return result;
}

void BatchNormBackward::reference(std::span<const TensorView> in,
                                  std::span<const TensorView> out) const {
  const NormOperandIndices at(attributes.scale);
  const std::vector<double> mean = widened(in[at.mean]);
  const std::vector<double> variance = widened(in[at.variance]);
  const Affine f = affine(attributes, in, mean, variance);
  const Dims d = dims(in[0].desc.shape);
  const auto channels = static_cast<std::size_t>(d.c);
  const auto channel = [&, pixels = static_cast<std::size_t>(d.pixels())](std::size_t i) {
    return i / pixels % channels;
  };
  const double count = static_cast<double>(d.n * d.pixels());
  const auto x = in[0].as<float>();
  const auto dy = in[index_of_dy()].as<float>();
  const auto arriving = [&](std::size_t i) {
    return joined ? dy[i] + in[index_of_dy() + 1].as<float>()[i] : dy[i];
  };

  const auto opens = [&](std::size_t i) {
    if (!passes_gradient()) {
      return !attributes.relu || is_open(f.slope[channel(i)] * x[i] + f.offset[channel(i)],
                                         static_cast<double>(attributes.limit));
    }
    return attributes.mask ? is_gate_open(in.back(), in[0].desc.shape, i)
                           : is_open(in.back().as<float>()[i]);
  };

  // g is a copy because out[0] may share the bytes of dy.
  std::vector<double> g(dy.size()), xhat(dy.size()), dbeta(channels), dgamma(channels);
  for (std::size_t i = 0; i < g.size(); ++i) {
    const std::size_t c = channel(i);
    g[i] = gated(arriving(i), opens(i));
    xhat[i] = (x[i] - mean[c]) / std::sqrt(variance[c] + attributes.epsilon);
    dbeta[c] += g[i];
    dgamma[c] += g[i] * xhat[i];
  }
  const auto dx = out[0].as<float>();
  for (std::size_t i = 0; i < g.size(); ++i) {
    const std::size_t c = channel(i);
    dx[i] =
        static_cast<float>(f.slope[c] * (g[i] - dbeta[c] / count - xhat[i] * dgamma[c] / count));
  }
  narrow(dbeta, out[1]);
  if (attributes.scale) {
    narrow(dgamma, out[2]);
  }
  if (passes_gradient()) {
    narrow(g, out.back());
  }
}

bool BatchNormBackward::may_overwrite(std::size_t input, std::size_t output) const {
  const std::size_t g = attributes.scale ? 3 : 2;
  const bool gradient = input == index_of_dy() || (joined && input == index_of_dy() + 1);
  return (output == 0 && (input == 0 || gradient)) || (output == g && gradient);
}

// Counts x and the gradient after the ReLU, which the sums need; a joined gradient that is not an
// output is summed again.
std::size_t BatchNormBackward::reread_bytes(std::span<const TensorDesc> in) const {
  return (joined && !passes_gradient() ? 3 : 2) * in[0].bytes();
}

std::vector<TensorDesc> BatchNormInference::infer(std::span<const TensorDesc> in) const {
  const NormOperandIndices at(attributes.scale);
  require_count(*this, in, at.variance + 1 + (attributes.residual ? 1 : 0));
  require_vectors(*this, in, at.variance);
  require(!attributes.residual || (in.back().shape == in[0].shape && in.back().type == in[0].type),
          *this, in, "the residual must be like x");
  require_limit(*this, attributes, in);
  return {described(in[0].shape, in[0].type)};
}

void BatchNormInference::reference(std::span<const TensorView> in,
                                   std::span<const TensorView> out) const {
  const NormOperandIndices at(attributes.scale);
  const Affine f = affine(attributes, in, widened(in[at.mean]), widened(in[at.variance]));
  run_affine(attributes, f, in, out[0]);
}

std::vector<TensorDesc> FoldBatchNorm::infer(std::span<const TensorDesc> in) const {
  require_count(*this, in, NormOperandIndices(scale).variance + 1 + (bias ? 1 : 0));
  const TensorDesc vector = described({in[0].shape[0]}, DataType::f32);
  for (const TensorDesc& desc : in.subspan(1)) {
    require(desc.shape == vector.shape, *this, in, "takes weights [O, ...] and vectors [O]");
  }
  return {described(in[0].shape, DataType::f32), vector};
}

void FoldBatchNorm::reference(std::span<const TensorView> in,
                              std::span<const TensorView> out) const {
  const NormOperandIndices at(scale);
  const auto w = in[0].as<float>();
  const auto folded = out[0].as<float>();
  const auto folded_bias = out[1].as<float>();
  const std::size_t per_filter = w.size() / folded_bias.size();
  for (std::size_t o = 0; o < folded_bias.size(); ++o) {
    const double gamma = scale ? in[at.gamma].as<float>()[o] : 1;
    const double s = gamma / std::sqrt(in[at.variance].as<float>()[o] + epsilon);
    const double b = bias ? in.back().as<float>()[o] : 0;
    folded_bias[o] =
        static_cast<float>((b - in[at.mean].as<float>()[o]) * s + in[at.beta].as<float>()[o]);
    for (std::size_t i = o * per_filter; i < (o + 1) * per_filter; ++i) {
      folded[i] = static_cast<float>(w[i] * s);
    }
  }
}

std::vector<TensorDesc> MovingAverage::infer(std::span<const TensorDesc> in) const {
  require(in.size() == 4 * layers.size(), *this, in, "takes four vectors per layer");
  for (std::size_t i = 0; i < in.size(); ++i) {
    require(in[i].shape == in[i / 4 * 4].shape && in[i].type == DataType::f32, *this, in,
            "takes f32 vectors of one length per layer");
  }
  return {};
}

void MovingAverage::reference(std::span<const TensorView> in,
                              std::span<const TensorView> /*out*/) const {
  for (std::size_t layer = 0; layer < layers.size(); ++layer) {
    const double decay = layers[layer].decay;
    const double count = layers[layer].count;
    const double unbiased = count / std::max(count - 1, 1.0);
    const auto advance = [&](const TensorView& moving, const TensorView& batch, double factor) {
      const auto average = moving.as<float>();
      for (std::size_t c = 0; c < average.size(); ++c) {
        average[c] =
            static_cast<float>(decay * average[c] + (1 - decay) * factor * batch.as<float>()[c]);
      }
    };
    advance(in[4 * layer], in[4 * layer + 2], 1);
    advance(in[4 * layer + 1], in[4 * layer + 3], unbiased);
  }
}

Value batch_norm(Value x, const BatchNormOptions& options) {
  Graph& graph = *x.graph;
  const std::string name =
      options.layer.empty() ? graph.unique_name("batchnorm") : graph.scoped_name(options.layer);
  const BatchNormAttributes attributes{.epsilon = options.epsilon,
                                       .scale = options.scale,
                                       .decay = options.decay,
                                       .variables = name + "/"};
  const TensorDesc vector = described({x.desc().shape[1]}, DataType::f32);
  const auto starts_at = [](double value) {
    return Initializer{Initializer::Kind::constant, value, 0};
  };
  const std::string& prefix = attributes.variables;
  std::vector<Value> in{x};
  if (options.scale) {
    in.push_back(graph.parameter(prefix + "gamma", vector,
                                 {.initializer = starts_at(1), .decay = options.decay_parameters}));
  }
  in.push_back(graph.parameter(prefix + "beta", vector,
                               {.initializer = starts_at(0), .decay = options.decay_parameters}));
  const Value mean = graph.state(prefix + "moving_mean", vector, starts_at(0), true);
  const Value variance = graph.state(prefix + "moving_variance", vector, starts_at(1), true);
  if (graph.traits().training) {
    return emit_all(BatchNorm(attributes), in).front();
  }
  in.insert(in.end(), {mean, variance});
  return emit_all(BatchNormInference(attributes), in).front();
}

Value conv_bn(Value x, ConvOptions options, const BatchNormOptions& norm) {
  const bool with_relu = options.relu;
  options.bias = false;
  options.relu = false;
  const Value y = conv(x, options);
  // The kernel is the newest tensor besides y: its name contains the layer's name.
  const Graph& graph = *x.graph;
  const std::string& kernel = graph.info(graph.nodes().back().inputs[1]).name;
  const std::string layer = kernel.substr(0, kernel.size() - options.weights.size() - 1);
  const NameScope below(*x.graph, layer.substr(layer.rfind('/') + 1));
  const Value normalised = batch_norm(y, norm);
  return with_relu ? relu(normalised) : normalised;
}

void append_moving_averages(Graph& graph) {
  std::vector<MovingAverage::Layer> layers;
  std::vector<Value> in;
  const auto variable = [&](const std::string& name) {
    const std::optional<TensorId> id = graph.find(name);
    check(id.has_value(), "batch_norm: the graph has no variable " + name);
    return Value{&graph, *id};
  };
  for (const Node& node : graph.nodes()) {
    const auto* norm = dynamic_cast<const BatchNorm*>(node.op.get());
    if (norm == nullptr) {
      continue;
    }
    const Dims d = dims(graph.info(node.inputs[0]).desc.shape);
    const BatchNormAttributes& a = norm->attributes;
    layers.push_back({.decay = a.decay, .count = static_cast<double>(d.n * d.pixels())});
    in.insert(in.end(),
              {variable(a.variables + "moving_mean"), variable(a.variables + "moving_variance"),
               Value{&graph, node.outputs[1]}, Value{&graph, node.outputs[2]}});
  }
  if (!layers.empty()) {
    graph.append(std::make_shared<const MovingAverage>(std::move(layers)), in);
  }
}

}  // namespace cnn::layers
