#include "layers/fused_norm.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "layers/operands.h"
#include "layers/relu_mask.h"

namespace cnn::layers {

namespace {

void require_real_image(const Op& op, std::span<const TensorDesc> in) {
  require(in[0].shape.rank() == 4 && is_real(in[0].type), op, in, "takes real images");
}

bool is_vector(const TensorDesc& desc, const Shape& image) {
  return desc.shape == Shape{image[1]} && is_real(desc.type);
}

bool is_alike(const TensorDesc& a, const TensorDesc& b) {
  return a.shape == b.shape && a.type == b.type;
}

// Iterates over the channel of each element of an image in memory order.
class Channels {
 public:
  explicit Channels(const Shape& image)
      : pixels_(static_cast<std::size_t>(dims(image).pixels())),
        count_(static_cast<std::size_t>(image[1])) {}
  std::size_t count() const { return count_; }
  std::size_t of(std::size_t element) const { return element / pixels_ % count_; }

 private:
  std::size_t pixels_, count_;
};

}  // namespace

std::vector<TensorDesc> ChannelSums::infer(std::span<const TensorDesc> in) const {
  require_count(*this, in, 1);
  require_real_image(*this, in);
  return std::vector<TensorDesc>(2, described({in[0].shape[1]}, DataType::f32));
}

void ChannelSums::reference(std::span<const TensorView> in, std::span<const TensorView> out) const {
  const Channels channels(in[0].desc.shape);
  std::vector<double> sum(channels.count()), squares(channels.count());
  const auto x = in[0].as<float>();
  for (std::size_t i = 0; i < x.size(); ++i) {
    sum[channels.of(i)] += x[i];
    squares[channels.of(i)] += static_cast<double>(x[i]) * x[i];
  }
  const auto round = [](double value) { return static_cast<float>(value); };
  std::ranges::transform(sum, out[0].as<float>().begin(), round);
  std::ranges::transform(squares, out[1].as<float>().begin(), round);
}

std::vector<TensorDesc> FinishStatistics::infer(std::span<const TensorDesc> in) const {
  require_count(*this, in, 4);
  for (const TensorDesc& desc : in) {
    require(desc.shape.rank() == 1 && desc.type == DataType::f32 && desc.shape == in[0].shape,
            *this, in, "takes f32 vectors of one length");
  }
  const TensorDesc vector = in[0];
  const TensorDesc affine = described(vector.shape, type);
  std::vector<TensorDesc> result{vector, vector, vector, affine, affine};
  if (type != DataType::f32) {
    result.insert(result.end(), 2, vector);
  }
  return result;
}

void FinishStatistics::reference(std::span<const TensorView> in,
                                 std::span<const TensorView> out) const {
  for (std::size_t c = 0; c < in[0].as<float>().size(); ++c) {
    const double mean = in[0].as<float>()[c] / count;
    const double difference = in[1].as<float>()[c] / count - mean * mean;
    const double variance = difference < 0 ? 0 : difference;  // rounding may go below; NaN stays
    const double r = 1 / std::sqrt(variance + epsilon);
    const double a = in[2].as<float>()[c] * r;
    const double b = in[3].as<float>()[c] - mean * a;
    const double results[] = {mean, variance, r, a, b, a, b};
    for (std::size_t k = 0; k < out.size(); ++k) {
      out[k].as<float>()[c] = static_cast<float>(results[k]);
    }
  }
}

std::vector<TensorDesc> ScaleBias::infer(std::span<const TensorDesc> in) const {
  require_count(*this, in, residual == Residual::none ? 3 : residual == Residual::image ? 4 : 6);
  require_real_image(*this, in);
  for (const std::size_t vectors : {1, 4}) {
    for (std::size_t i = vectors; i < std::min(vectors + 2, in.size()); ++i) {
      require(is_vector(in[i], in[0].shape) && in[i].type == in[vectors].type, *this, in,
              "slopes and offsets are [C] of one type");
    }
  }
  require(residual == Residual::none || is_alike(in[3], in[0]), *this, in,
          "takes images of one kind");
  std::vector<TensorDesc> result{described(in[0].shape, in[0].type)};
  if (mask) {
    result.push_back(relu_mask_of(in[0].shape));
  }
  return result;
}

void ScaleBias::reference(std::span<const TensorView> in, std::span<const TensorView> out) const {
  const Channels channels(in[0].desc.shape);
  const auto value = [&in](std::size_t operand, std::size_t i) -> double {
    return in[operand].as<float>()[i];
  };
  const auto y = out[0].as<float>();
  for (std::size_t i = 0; i < y.size(); ++i) {
    const std::size_t c = channels.of(i);
    double sum = value(1, c) * value(0, i) + value(2, c);
    if (residual == Residual::image) {
      sum += value(3, i);
    } else if (residual == Residual::normalised) {
      sum += value(4, c) * value(3, i) + value(5, c);
    }
    const double positive = relu && sum < 0 ? 0 : sum;
    y[i] = static_cast<float>(positive > limit ? limit : positive);  // a NaN stays one
  }
  if (mask) {
    set_relu_mask(out[0], out[1]);
  }
}

std::vector<TensorDesc> NormBackwardEnd::infer(std::span<const TensorDesc> in) const {
  require_count(*this, in, 7);
  require_real_image(*this, in);
  require(is_alike(in[1], in[0]), *this, in, "takes images of one kind");
  for (const TensorDesc& desc : in.subspan(2)) {
    require(is_vector(desc, in[0].shape) && desc.type == DataType::f32, *this, in,
            "sums and statistics are f32 [C]");
  }
  return {described(in[0].shape, in[0].type), described({in[0].shape[1]}, DataType::f32)};
}

void NormBackwardEnd::reference(std::span<const TensorView> in,
                                std::span<const TensorView> out) const {
  const Channels channels(in[0].desc.shape);
  const auto value = [&in](std::size_t operand, std::size_t i) -> double {
    return in[operand].as<float>()[i];
  };
  const auto dx = out[0].as<float>();
  const double count = static_cast<double>(dx.size()) / static_cast<double>(channels.count());
  std::vector<double> a(channels.count()), b(a), offset(a);
  for (std::size_t c = 0; c < a.size(); ++c) {
    const double sum = value(3, c), mean = value(4, c), r = value(5, c);
    const double dgamma = r * (value(2, c) - mean * sum);
    a[c] = value(6, c) * r;
    b[c] = -a[c] * r * dgamma / count;
    offset[c] = -b[c] * mean - a[c] * sum / count;
    out[1].as<float>()[c] = static_cast<float>(dgamma);
  }
  for (std::size_t i = 0; i < dx.size(); ++i) {
    const std::size_t c = channels.of(i);
    dx[i] = static_cast<float>(a[c] * value(0, i) + b[c] * value(1, i) + offset[c]);
  }
}

}  // namespace cnn::layers
