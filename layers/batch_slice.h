#pragma once

#include <cstdint>

#include "runtime/graph.h"
#include "runtime/op.h"

namespace cnn::layers {

// Copies examples [first, first + count) of a batch: x [N,...] -> y [count,...] of any type. It has
// no gradient: it slices what comes from outside, and the gradients that ConcatBatch hands on.
class SliceBatch final : public Op {
 public:
  SliceBatch(std::int64_t f, std::int64_t c) : first(f), count(c) {}
  std::string_view name() const override { return "slice_batch"; }
  std::vector<TensorDesc> infer(std::span<const TensorDesc> in) const override;
  void reference(std::span<const TensorView> in, std::span<const TensorView> out) const override;

  std::int64_t first, count;
};

// Joins examples one after another: [N0,...], [N1,...], ... -> [N0+N1+...,...].
class ConcatBatch final : public Op {
 public:
  std::string_view name() const override { return "concat_batch"; }
  std::vector<TensorDesc> infer(std::span<const TensorDesc> in) const override;
  void reference(std::span<const TensorView> in, std::span<const TensorView> out) const override;
  std::vector<std::optional<Value>> backward(const Backprop& backprop) const override;
};

Value slice_batch(Value x, std::int64_t first, std::int64_t count);
Value concat_batch(std::span<const Value> parts);

}  // namespace cnn::layers
