#include "layers/loss.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "layers/elementwise.h"
#include "layers/initializer.h"
#include "layers/operands.h"
#include "runtime/error.h"

namespace cnn::layers {

namespace {

void require_rows(const Op& op, std::span<const TensorDesc> in) {
  require(in[0].shape.rank() == 2 && in[0].type == DataType::f32 &&
              in[1].shape == Shape{in[0].shape[0]} && in[1].type == DataType::i32,
          op, in, "takes f32 [N, C] and labels i32 [N]");
}

std::size_t checked_label(std::int32_t label, std::size_t classes) {
  if (label < 0 || static_cast<std::size_t>(label) >= classes) {
    throw Error("softmax_cross_entropy: label " + std::to_string(label) + " is outside the " +
                std::to_string(classes) + " classes");
  }
  return static_cast<std::size_t>(label);
}

}  // namespace

std::vector<TensorDesc> SoftmaxCrossEntropy::infer(std::span<const TensorDesc> in) const {
  require_count(*this, in, 2);
  require_rows(*this, in);
  return {described({}, DataType::f32), described(in[0].shape, DataType::f32)};
}

// Subtracts the largest logit first: exp cannot overflow, and the result is the same.
void SoftmaxCrossEntropy::reference(std::span<const TensorView> in,
                                    std::span<const TensorView> out) const {
  const auto labels = in[1].as<std::int32_t>();
  const auto classes = static_cast<std::size_t>(in[0].desc.shape[1]);
  double total = 0;
  for (std::size_t n = 0; n < labels.size(); ++n) {
    const auto logits = in[0].as<float>().subspan(n * classes, classes);
    const auto probabilities = out[1].as<float>().subspan(n * classes, classes);
    const double largest = *std::ranges::max_element(logits);
    double sum = 0;
    for (const float logit : logits) {
      sum += std::exp(logit - largest);
    }
    for (std::size_t c = 0; c < classes; ++c) {
      probabilities[c] = static_cast<float>(std::exp(logits[c] - largest) / sum);
    }
    total += std::log(sum) + largest - logits[checked_label(labels[n], classes)];
  }
  out[0].as<float>()[0] = static_cast<float>(total / static_cast<double>(labels.size()));
}

std::vector<std::optional<Value>> SoftmaxCrossEntropy::backward(const Backprop& b) const {
  check(b.grad[0] && !b.grad[1], "softmax_cross_entropy: only the loss has a gradient");
  return {emit(SoftmaxCrossEntropyBackward(), {b.out[1], b.in[1], *b.grad[0]}), std::nullopt};
}

std::vector<TensorDesc> SoftmaxCrossEntropyBackward::infer(std::span<const TensorDesc> in) const {
  require_count(*this, in, 3);
  require_rows(*this, in);
  require(in[2].shape.rank() == 0 && in[2].type == DataType::f32, *this, in, "dloss is f32 []");
  return {described(in[0].shape, DataType::f32)};
}

void SoftmaxCrossEntropyBackward::reference(std::span<const TensorView> in,
                                            std::span<const TensorView> out) const {
  const auto probabilities = in[0].as<float>();
  const auto labels = in[1].as<std::int32_t>();
  const auto classes = static_cast<std::size_t>(in[0].desc.shape[1]);
  const float factor = in[2].as<float>()[0] / static_cast<float>(labels.size());
  const auto dlogits = out[0].as<float>();
  for (std::size_t i = 0; i < dlogits.size(); ++i) {
    const bool hit = i % classes == checked_label(labels[i / classes], classes);
    dlogits[i] = factor * (probabilities[i] - (hit ? 1.0F : 0.0F));
  }
}

std::vector<TensorDesc> Accuracy::infer(std::span<const TensorDesc> in) const {
  require_count(*this, in, 2);
  require_rows(*this, in);
  return {described({}, DataType::i32), described({}, DataType::i32)};
}

void Accuracy::reference(std::span<const TensorView> in, std::span<const TensorView> out) const {
  const auto labels = in[1].as<std::int32_t>();
  const auto classes = static_cast<std::size_t>(in[0].desc.shape[1]);
  std::int32_t top_1 = 0;
  std::int32_t top_5 = 0;
  for (std::size_t n = 0; n < labels.size(); ++n) {
    const auto logits = in[0].as<float>().subspan(n * classes, classes);
    const float own = logits[checked_label(labels[n], classes)];
    const auto greater = std::ranges::count_if(logits, [&](float logit) { return logit > own; });
    const bool valid =
        std::ranges::all_of(logits, [](float logit) { return std::isfinite(logit); });
    top_1 += valid && greater < 1 ? 1 : 0;
    top_5 += valid && greater < 5 ? 1 : 0;
  }
  out[0].as<std::int32_t>()[0] = top_1;
  out[1].as<std::int32_t>()[0] = top_5;
}

std::vector<TensorDesc> SyntheticLabels::infer(std::span<const TensorDesc> in) const {
  require_count(*this, in, 1);
  require(in[0].shape.rank() == 0 && in[0].type == DataType::i32, *this, in,
          "takes the step, i32 []");
  return {described({batch}, DataType::i32)};
}

void SyntheticLabels::reference(std::span<const TensorView> in,
                                std::span<const TensorView> out) const {
  const auto step = static_cast<std::uint32_t>(in[0].as<std::int32_t>()[0]);
  const std::uint64_t stream = random_bits(seed, step);
  const auto labels = out[0].as<std::int32_t>();
  for (std::size_t i = 0; i < labels.size(); ++i) {
    labels[i] = static_cast<std::int32_t>((random_bits(stream, i) >> 33) %
                                          static_cast<std::uint64_t>(bound));
  }
}

Value softmax_cross_entropy(Value logits, Value labels) {
  return emit(SoftmaxCrossEntropy(), {convert(logits, DataType::f32), labels});
}

}  // namespace cnn::layers
