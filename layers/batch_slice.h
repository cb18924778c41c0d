#pragma once

#include <cstdint>

#include "runtime/graph.h"
#include "runtime/op.h"

namespace cnn::layers {

// Copies examples [first, first + count) of a batch: x [N,...] -> y [count,...] of any type. The op
// has no gradient: it slices inputs of the graph, and gradients in the backward pass of
// ConcatBatch.
class SliceBatch final : public Op {
 public:
  SliceBatch(std::int64_t f, std::int64_t c) : first(f), count(c) {}
  std::string_view name() const override { return "slice_batch"; }
  std::vector<TensorDesc> infer(std::span<const TensorDesc> in) const override;
  void reference(std::span<const TensorView> in, std::span<const TensorView> out) const override;

  std::int64_t first, count;
};

// Concatenates batches along the first dimension: [N0,...], [N1,...], ... -> [N0+N1+...,...].
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
