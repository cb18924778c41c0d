#include "layers/sliced_norm.h"

#include <algorithm>
#include <cmath>

#include "layers/gate.h"
#include "layers/operands.h"

namespace cnn::layers {

namespace {

bool is_vector(const TensorDesc& desc, std::int64_t channels) {
  return desc.shape == Shape{channels} && desc.type == DataType::f32;
}

// Requires a real image, then vectors by channel, then images like the first.
void require_operands(const Op& op, std::span<const TensorDesc> in, std::size_t vectors) {
  require(in[0].shape.rank() == 4 && is_real(in[0].type), op, in, "takes real images");
  for (const TensorDesc& desc : in.subspan(1, vectors)) {
    require(is_vector(desc, in[0].shape[1]), op, in, "parameters, statistics and sums are f32 [C]");
  }
  for (const TensorDesc& desc : in.subspan(1 + vectors)) {
    require(desc.shape == in[0].shape && desc.type == in[0].type, op, in,
            "the other images must be like x");
  }
}

std::vector<TensorDesc> vectors_of(const TensorDesc& image, std::size_t count) {
  return std::vector<TensorDesc>(count, described({image.shape[1]}, DataType::f32));
}

// Finds the channel of each element of an image in memory order.
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

// The coefficients of each channel: xhat = (x - mean) r, y = gamma xhat + beta.
struct Norm {
  Norm(const BatchNormAttributes& a, std::span<const TensorView> in) : limit(a.limit) {
    const NormOperandIndices at(a.scale);
    for (std::size_t c = 0; c < in[at.beta].as<float>().size(); ++c) {
      mean.push_back(in[at.mean].as<float>()[c]);
      r.push_back(1 / std::sqrt(in[at.variance].as<float>()[c] + a.epsilon));
      gamma.push_back(a.scale ? in[at.gamma].as<float>()[c] : 1);
      beta.push_back(in[at.beta].as<float>()[c]);
    }
  }
  double xhat(std::size_t c, double x) const { return (x - mean[c]) * r[c]; }
  double y(std::size_t c, double x) const {
    const double slope = gamma[c] * r[c];
    return slope * x + (beta[c] - mean[c] * slope);
  }
  // Returns whether the gradient of a ReLU behind the norm passes.
  bool is_open(std::size_t c, double x) const { return layers::is_open(y(c, x), limit); }

  double limit;  // of the ReLU
  std::vector<double> mean, r, gamma, beta;
};

void narrow(std::span<const double> from, const TensorView& to) {
  std::ranges::transform(from, to.as<float>().begin(),
                         [](double value) { return static_cast<float>(value); });
}

}  // namespace

std::vector<TensorDesc> NormMoments::infer(std::span<const TensorDesc> in) const {
  require_count(*this, in, 1);
  require_operands(*this, in, 0);
  return vectors_of(in[0], 2);
}

void NormMoments::reference(std::span<const TensorView> in, std::span<const TensorView> out) const {
  const Channels channels(in[0].desc.shape);
  const auto x = in[0].as<float>();
  const double count = static_cast<double>(x.size()) / static_cast<double>(channels.count());
  std::vector<double> mean(channels.count()), squares(channels.count());
  for (std::size_t i = 0; i < x.size(); ++i) {
    mean[channels.of(i)] += x[i] / count;
  }
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double difference = x[i] - mean[channels.of(i)];
    squares[channels.of(i)] += difference * difference;
  }
  narrow(mean, out[0]);
  narrow(squares, out[1]);
}

std::vector<TensorDesc> MergeMoments::infer(std::span<const TensorDesc> in) const {
  require_count(*this, in, 2 * counts.size());
  require(!in.empty() && in[0].shape.rank() == 1, *this, in, "takes the moments of slices");
  for (const TensorDesc& desc : in) {
    require(is_vector(desc, in[0].shape[0]), *this, in, "moments are f32 [C]");
  }
  return {described(in[0].shape, DataType::f32), described(in[0].shape, DataType::f32)};
}

void MergeMoments::reference(std::span<const TensorView> in,
                             std::span<const TensorView> out) const {
  for (std::size_t c = 0; c < out[0].as<float>().size(); ++c) {
    double before = 0, mean = 0, squares = 0;
    for (std::size_t s = 0; s < counts.size(); ++s) {
      const double after = before + counts[s];
      const double share = counts[s] / after;
      const double distance = static_cast<double>(in[2 * s].as<float>()[c]) - mean;
      mean += distance * share;
      squares += in[2 * s + 1].as<float>()[c] + distance * distance * before * share;
      before = after;
    }
    out[0].as<float>()[c] = static_cast<float>(mean);
    out[1].as<float>()[c] = static_cast<float>(squares / before);
  }
}

std::vector<TensorDesc> NormGradientSums::infer(std::span<const TensorDesc> in) const {
  require_count(*this, in, index_of_dy() + 1 + (joined ? 1 : 0) + (passes_gradient() ? 1 : 0));
  require(!attributes.mask, *this, in, "reads no mask");
  require_operands(*this, in, index_of_dy() - 1);
  std::vector<TensorDesc> result = vectors_of(in[0], 2);
  if (passes_gradient()) {
    result.push_back(described(in[0].shape, in[0].type));
  }
  return result;
}

void NormGradientSums::reference(std::span<const TensorView> in,
                                 std::span<const TensorView> out) const {
  const Norm norm(attributes, in);
  const Channels channels(in[0].desc.shape);
  const auto x = in[0].as<float>();
  const auto dy = in[index_of_dy()].as<float>();
  std::vector<double> dbeta(channels.count()), dgamma(channels.count());
  for (std::size_t i = 0; i < x.size(); ++i) {
    const std::size_t c = channels.of(i);
    const bool opens = passes_gradient() ? is_open(in.back().as<float>()[i])
                                         : !attributes.relu || norm.is_open(c, x[i]);
    const float arriving = joined ? dy[i] + in[index_of_dy() + 1].as<float>()[i] : dy[i];
    const double g = gated(static_cast<double>(arriving), opens);
    dbeta[c] += g;
    dgamma[c] += g * norm.xhat(c, x[i]);
    if (passes_gradient()) {
      out[2].as<float>()[i] = static_cast<float>(g);
    }
  }
  narrow(dbeta, out[0]);
  narrow(dgamma, out[1]);
}

bool NormGradientSums::may_overwrite(std::size_t input, std::size_t output) const {
  return output == 2 && (input == index_of_dy() || (joined && input == index_of_dy() + 1));
}

std::vector<TensorDesc> NormInputGradient::infer(std::span<const TensorDesc> in) const {
  require_count(*this, in, index_of_sums() + 3 + (joined ? 1 : 0));
  require_operands(*this, in, index_of_sums() + 1);
  return {described(in[0].shape, in[0].type)};
}

void NormInputGradient::reference(std::span<const TensorView> in,
                                  std::span<const TensorView> out) const {
  const Norm norm(attributes, in);
  const Channels channels(in[0].desc.shape);
  const auto x = in[0].as<float>();
  const auto dbeta = in[index_of_sums()].as<float>();
  const auto dgamma = in[index_of_sums() + 1].as<float>();
  const auto arriving = in[index_of_sums() + 2].as<float>();
  for (std::size_t i = 0; i < x.size(); ++i) {
    const std::size_t c = channels.of(i);
    const float dy = joined ? arriving[i] + in.back().as<float>()[i] : arriving[i];
    const double g = gated(static_cast<double>(dy), !gates() || norm.is_open(c, x[i]));
    const double centred = g - dbeta[c] / count - norm.xhat(c, x[i]) * dgamma[c] / count;
    out[0].as<float>()[i] = static_cast<float>(norm.gamma[c] * norm.r[c] * centred);
  }
}

bool NormInputGradient::may_overwrite(std::size_t input, std::size_t output) const {
  return output == 0 && (input == 0 || input >= index_of_sums() + 2);
}

}  // namespace cnn::layers
