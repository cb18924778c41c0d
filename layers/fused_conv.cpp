#include "layers/fused_conv.h"

#include <vector>

#include "layers/conv.h"
#include "layers/fused_norm.h"
#include "layers/gate.h"
#include "layers/operands.h"

namespace cnn::layers {

namespace {

Conv2d plain_conv(const Window& window) { return Conv2d({.window = window}); }

bool is_vector(const TensorDesc& desc, std::int64_t channels) {
  return desc.shape == Shape{channels} && is_real(desc.type);
}

// Computes relu(a x + b) as a separate image: the definition of a prologue.
class Normalised {
 public:
  Normalised(const TensorView& x, const TensorView& a, const TensorView& b)
      : desc_(x.desc), values_(x.as<float>().begin(), x.as<float>().end()) {
    const Dims d = dims(x.desc.shape);
    for (std::size_t i = 0; i < values_.size(); ++i) {
      const std::size_t c =
          i / static_cast<std::size_t>(d.pixels()) % static_cast<std::size_t>(d.c);
      const double sum = static_cast<double>(a.as<float>()[c]) * values_[i] + b.as<float>()[c];
      values_[i] = static_cast<float>(sum < 0 ? 0 : sum);  // a NaN stays one
    }
  }

  TensorView view() { return {desc_, reinterpret_cast<std::byte*>(values_.data())}; }

 private:
  TensorDesc desc_;
  std::vector<float> values_;
};

}  // namespace

std::vector<TensorDesc> FusedConv::infer(std::span<const TensorDesc> in) const {
  require_count(*this, in, attributes.prologue ? 4 : 2);
  std::vector<TensorDesc> result = plain_conv(attributes.window).infer(in.first(2));
  for (const TensorDesc& vector : in.subspan(2)) {
    require(is_vector(vector, in[0].shape[1]) && vector.type == in[2].type, *this, in,
            "a and b are [C] of one type");
  }
  if (attributes.statistics) {
    result.insert(result.end(), 2, described({in[1].shape[0]}, DataType::f32));
  }
  return result;
}

void FusedConv::reference(std::span<const TensorView> in, std::span<const TensorView> out) const {
  const Conv2d conv = plain_conv(attributes.window);
  if (attributes.prologue) {
    Normalised x(in[0], in[2], in[3]);
    const TensorView operands[] = {x.view(), in[1]};
    conv.reference(operands, out.first(1));
  } else {
    conv.reference(in.first(2), out.first(1));
  }
  if (attributes.statistics) {
    ChannelSums().reference(out.first(1), out.subspan(1));
  }
}

double FusedConv::flops(std::span<const TensorDesc> in) const {
  return plain_conv(attributes.window).flops(in.first(2));
}

std::vector<TensorDesc> ConvBackwardDataNorm::infer(std::span<const TensorDesc> in) const {
  require_count(*this, in, 7);
  require(in[2].shape.rank() == 4 && in[2].type == in[0].type, *this, in,
          "takes images x of dy's type");
  const std::vector<TensorDesc> d =
      Conv2dBackwardData({.window = window}, in[2].shape).infer(in.first(2));
  for (const TensorDesc& vector : in.subspan(3)) {
    require(is_vector(vector, in[2].shape[1]) && vector.type == DataType::f32, *this, in,
            "mean, r, gamma and beta are f32 [C]");
  }
  std::vector<TensorDesc> result{described(in[2].shape, in[2].type)};
  result.insert(result.end(), 5, described({in[2].shape[1]}, DataType::f32));
  return result;
}

void ConvBackwardDataNorm::reference(std::span<const TensorView> in,
                                     std::span<const TensorView> out) const {
  Conv2dBackwardData({.window = window}, in[2].desc.shape).reference(in.first(2), out.first(1));
  const Dims d = dims(in[2].desc.shape);
  const auto channels = static_cast<std::size_t>(d.c);
  const double count = static_cast<double>(d.n * d.pixels());
  const auto x = in[2].as<float>();
  const auto g = out[0].as<float>();
  const auto vector = [&in](std::size_t operand, std::size_t c) -> double {
    return in[operand].as<float>()[c];
  };
  std::vector<double> dbeta(channels), dgamma(channels);
  for (std::size_t i = 0; i < g.size(); ++i) {
    const std::size_t c = i / static_cast<std::size_t>(d.pixels()) % channels;
    const double xhat = (x[i] - vector(3, c)) * vector(4, c);
    g[i] = gated(g[i], !(vector(5, c) * xhat + vector(6, c) < 0));
    dbeta[c] += g[i];
    dgamma[c] += g[i] * xhat;
  }
  for (std::size_t c = 0; c < channels; ++c) {
    const double a = vector(5, c) * vector(4, c);
    const double b = -a * vector(4, c) * dgamma[c] / count;
    const double results[] = {dgamma[c], dbeta[c], a, b, -b * vector(3, c) - a * dbeta[c] / count};
    for (std::size_t k = 0; k < std::size(results); ++k) {
      out[k + 1].as<float>()[c] = static_cast<float>(results[k]);
    }
  }
}

double ConvBackwardDataNorm::flops(std::span<const TensorDesc> in) const {
  return Conv2dBackwardData({.window = window}, in[2].shape).flops(in.first(2));
}

std::vector<TensorDesc> FusedConvBackwardWeights::infer(std::span<const TensorDesc> in) const {
  require_count(*this, in, 4);
  for (const TensorDesc& vector : in.subspan(1, 2)) {
    require(
        in[0].shape.rank() == 4 && is_vector(vector, in[0].shape[1]) && vector.type == in[1].type,
        *this, in, "a and b are [C] of one type");
  }
  const TensorDesc operands[] = {in[0], in[3]};
  return Conv2dBackwardWeights({.window = window}, w_shape).infer(operands);
}

void FusedConvBackwardWeights::reference(std::span<const TensorView> in,
                                         std::span<const TensorView> out) const {
  Normalised x(in[0], in[1], in[2]);
  const TensorView operands[] = {x.view(), in[3]};
  Conv2dBackwardWeights({.window = window}, w_shape).reference(operands, out);
}

double FusedConvBackwardWeights::flops(std::span<const TensorDesc> in) const {
  const TensorDesc operands[] = {in[0], in[3]};
  return Conv2dBackwardWeights({.window = window}, w_shape).flops(operands);
}

}  // namespace cnn::layers
