#pragma once

#include "runtime/graph.h"
#include "runtime/op.h"

namespace cnn::layers {

struct LrnAttributes {
  std::int64_t radius = 4;  // neighbours on either side
  double bias = 1, alpha = 1, beta = 0.75;
};

// Local response normalisation across channels: with s[c] = bias + alpha sum_{|d - c| <= radius}
// x[d]^2, y[c] = x[c] s[c]^-beta. in: x [N,C,H,W]. out: y.
class Lrn final : public Op {
 public:
  explicit Lrn(LrnAttributes a) : attributes(a) {}
  std::string_view name() const override { return "lrn"; }
  std::vector<TensorDesc> infer(std::span<const TensorDesc> in) const override;
  void reference(std::span<const TensorView> in, std::span<const TensorView> out) const override;
  std::vector<std::optional<Value>> backward(const Backprop& backprop) const override;

  LrnAttributes attributes;
};

// dx[c] = dy[c] s[c]^-beta - 2 alpha beta x[c] sum_{|d - c| <= radius} dy[d] x[d] s[d]^(-beta-1).
// in: x, dy. out: dx.
class LrnBackward final : public Op {
 public:
  explicit LrnBackward(LrnAttributes a) : attributes(a) {}
  std::string_view name() const override { return "lrn_backward"; }
  std::vector<TensorDesc> infer(std::span<const TensorDesc> in) const override;
  void reference(std::span<const TensorView> in, std::span<const TensorView> out) const override;

  LrnAttributes attributes;
};

// Lrn within a channel: the neighbours of a pixel are the pixels of the image at most `radius` rows
// and columns away. in: x [N,C,H,W]. out: y.
class WithinLrn final : public Op {
 public:
  explicit WithinLrn(LrnAttributes a) : attributes(a) {}
  std::string_view name() const override { return "lrn_within"; }
  std::vector<TensorDesc> infer(std::span<const TensorDesc> in) const override;
  void reference(std::span<const TensorView> in, std::span<const TensorView> out) const override;
  std::vector<std::optional<Value>> backward(const Backprop& backprop) const override;

  LrnAttributes attributes;
};

// in: x, dy. out: dx, as in LrnBackward.
class WithinLrnBackward final : public Op {
 public:
  explicit WithinLrnBackward(LrnAttributes a) : attributes(a) {}
  std::string_view name() const override { return "lrn_within_backward"; }
  std::vector<TensorDesc> infer(std::span<const TensorDesc> in) const override;
  void reference(std::span<const TensorView> in, std::span<const TensorView> out) const override;

  LrnAttributes attributes;
};

Value lrn(Value x, const LrnAttributes& attributes);
Value lrn_within(Value x, const LrnAttributes& attributes);

}  // namespace cnn::layers
