#pragma once

#include <cstdint>
#include <span>

#include "runtime/graph.h"
#include "runtime/op.h"

// Ops on ranges of columns of matrices, for dense layers that are computed in slices of their
// inputs: see layers/passes/slice_dense.h. They have no gradients, since they are appended after
// these.
namespace cnn::layers {

// Copies columns [first, first + count) of a matrix: x [N,K] -> y [N,count].
class SliceColumns final : public Op {
 public:
  SliceColumns(std::int64_t f, std::int64_t c) : first(f), count(c) {}
  std::string_view name() const override { return "slice_columns"; }
  std::vector<TensorDesc> infer(std::span<const TensorDesc> in) const override;
  void reference(std::span<const TensorView> in, std::span<const TensorView> out) const override;

  std::int64_t first, count;
};

// Puts matrices side by side: [N,K0], [N,K1], ... -> [N,K0+K1+...].
class ConcatColumns final : public Op {
 public:
  std::string_view name() const override { return "concat_columns"; }
  std::vector<TensorDesc> infer(std::span<const TensorDesc> in) const override;
  void reference(std::span<const TensorView> in, std::span<const TensorView> out) const override;
};

// A range of columns of every row of a matrix in memory. Sizes are in bytes.
struct ColumnRange {
  std::byte* data = nullptr;  // in the first row
  std::size_t pitch = 0;      // from one row to the next
};
// Returns the columns of a matrix from `first` on.
ColumnRange columns_from(const TensorView& matrix, std::int64_t first);

Value slice_columns(Value x, std::int64_t first, std::int64_t count);
Value concat_columns(std::span<const Value> parts);

}  // namespace cnn::layers
