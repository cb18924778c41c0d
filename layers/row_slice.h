#pragma once

#include <cstdint>
#include <span>

#include "runtime/graph.h"
#include "runtime/op.h"

// Ops on ranges of rows of images, for images that are computed in slices along their rows: see
// layers/passes/slice_rows.h.
namespace cnn::layers {

// Copies rows [first, first + count) of each image: x [N,C,H,W] -> y [N,C,count,W] of any type.
class SliceRows final : public Op {
 public:
  SliceRows(std::int64_t f, std::int64_t c) : first(f), count(c) {}
  std::string_view name() const override { return "slice_rows"; }
  std::vector<TensorDesc> infer(std::span<const TensorDesc> in) const override;
  void reference(std::span<const TensorView> in, std::span<const TensorView> out) const override;
  std::vector<std::optional<Value>> backward(const Backprop& backprop) const override;

  std::int64_t first, count;
};

// The gradient of SliceRows: puts rows of zeros above and below each image. in: dy [N,C,count,W].
// out: dx [N,C,height,W], of which dy are the rows from `first` on.
class SliceRowsBackward final : public Op {
 public:
  SliceRowsBackward(std::int64_t f, std::int64_t h) : first(f), height(h) {}
  std::string_view name() const override { return "slice_rows_backward"; }
  std::vector<TensorDesc> infer(std::span<const TensorDesc> in) const override;
  void reference(std::span<const TensorView> in, std::span<const TensorView> out) const override;

  std::int64_t first, height;
};

// Puts images one below another: [N,C,H0,W], [N,C,H1,W], ... -> [N,C,H0+H1+...,W].
class ConcatRows final : public Op {
 public:
  std::string_view name() const override { return "concat_rows"; }
  std::vector<TensorDesc> infer(std::span<const TensorDesc> in) const override;
  void reference(std::span<const TensorView> in, std::span<const TensorView> out) const override;
  std::vector<std::optional<Value>> backward(const Backprop& backprop) const override;
};

Value slice_rows(Value x, std::int64_t first, std::int64_t count);
Value concat_rows(std::span<const Value> parts);

}  // namespace cnn::layers
