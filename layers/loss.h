#pragma once

#include "runtime/graph.h"
#include "runtime/op.h"

namespace cnn::layers {

// Mean over the batch of -log softmax(logits)[label]. in: logits f32 [N,C], labels i32 [N].
// out: loss f32 [], probabilities f32 [N,C]. Sums over the batch in double, in order.
class SoftmaxCrossEntropy final : public Op {
 public:
  std::string_view name() const override { return "softmax_cross_entropy"; }
  std::vector<TensorDesc> infer(std::span<const TensorDesc> in) const override;
  void reference(std::span<const TensorView> in, std::span<const TensorView> out) const override;
  std::vector<std::optional<Value>> backward(const Backprop& backprop) const override;
};

// dlogits = dloss (probabilities - onehot(labels)) / N. in: probabilities, labels, dloss f32 [].
class SoftmaxCrossEntropyBackward final : public Op {
 public:
  std::string_view name() const override { return "softmax_cross_entropy_backward"; }
  std::vector<TensorDesc> infer(std::span<const TensorDesc> in) const override;
  void reference(std::span<const TensorView> in, std::span<const TensorView> out) const override;
  bool may_overwrite(std::size_t input, std::size_t output) const override {
    return input == 0 && output == 0;
  }
};

// Counts labels among the k highest logits, for k = 1 and 5: fewer than k logits are greater than
// the label's (ties are hits). A row with a non-finite logit has no hit. in: logits f32 [N,C],
// labels i32 [N]. out: top-1 hits i32 [], top-5 hits i32 [].
class Accuracy final : public Op {
 public:
  std::string_view name() const override { return "accuracy"; }
  std::vector<TensorDesc> infer(std::span<const TensorDesc> in) const override;
  void reference(std::span<const TensorView> in, std::span<const TensorView> out) const override;
};

// Draws new labels every step: uniform in [0, bound), a function of (seed, step, position).
// in: step i32 []. out: i32 [batch].
class SyntheticLabels final : public Op {
 public:
  SyntheticLabels(std::int64_t n, std::int32_t upper, std::uint64_t s)
      : batch(n), bound(upper), seed(s) {}
  std::string_view name() const override { return "synthetic_labels"; }
  std::vector<TensorDesc> infer(std::span<const TensorDesc> in) const override;
  void reference(std::span<const TensorView> in, std::span<const TensorView> out) const override;

  std::int64_t batch;
  std::int32_t bound;
  std::uint64_t seed;
};

// Returns the loss of a batch; converts logits of a narrower type to f32 first.
Value softmax_cross_entropy(Value logits, Value labels);

}  // namespace cnn::layers
