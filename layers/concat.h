#pragma once

#include <vector>

#include "runtime/graph.h"
#include "runtime/op.h"

namespace cnn::layers {

// Joins images along channels: [N,C0,H,W], [N,C1,H,W], ... -> [N,C0+C1+...,H,W].
class Concat final : public Op {
 public:
  std::string_view name() const override { return "concat"; }
  std::vector<TensorDesc> infer(std::span<const TensorDesc> in) const override;
  void reference(std::span<const TensorView> in, std::span<const TensorView> out) const override;
  std::vector<std::optional<Value>> backward(const Backprop& backprop) const override;
};

// Inverse of Concat. in: x [N,C,H,W]. out: one tensor for each entry of `channels`, which sum to C.
class Split final : public Op {
 public:
  explicit Split(std::vector<std::int64_t> c) : channels(std::move(c)) {}
  std::string_view name() const override { return "split"; }
  std::vector<TensorDesc> infer(std::span<const TensorDesc> in) const override;
  void reference(std::span<const TensorView> in, std::span<const TensorView> out) const override;

  std::vector<std::int64_t> channels;
};

// Adds zero channels before and after: [N,C,H,W] -> [N,before+C+after,H,W]. ResNet's option-A
// shortcut.
class PadChannels final : public Op {
 public:
  PadChannels(std::int64_t b, std::int64_t a) : before(b), after(a) {}
  std::string_view name() const override { return "pad_channels"; }
  std::vector<TensorDesc> infer(std::span<const TensorDesc> in) const override;
  void reference(std::span<const TensorView> in, std::span<const TensorView> out) const override;
  std::vector<std::optional<Value>> backward(const Backprop& backprop) const override;

  std::int64_t before, after;
};

// Returns channels [first, first + count) of x. Gradient of PadChannels.
class SliceChannels final : public Op {
 public:
  SliceChannels(std::int64_t f, std::int64_t c) : first(f), count(c) {}
  std::string_view name() const override { return "slice_channels"; }
  std::vector<TensorDesc> infer(std::span<const TensorDesc> in) const override;
  void reference(std::span<const TensorView> in, std::span<const TensorView> out) const override;

  std::int64_t first, count;
};

Value concat(std::span<const Value> parts);
Value pad_channels(Value x, std::int64_t before, std::int64_t after);

}  // namespace cnn::layers
