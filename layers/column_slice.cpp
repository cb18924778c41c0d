#include "layers/column_slice.h"

#include <algorithm>
#include <cstring>

#include "layers/operands.h"

namespace cnn::layers {

namespace {

bool is_real_matrix(const TensorDesc& desc) { return desc.shape.rank() == 2 && is_real(desc.type); }

// Copies all columns of the narrower matrix.
void copy_columns(ColumnRange from, ColumnRange to, std::int64_t rows) {
  const std::size_t bytes = std::min(from.pitch, to.pitch);
  for (std::size_t row = 0; row < static_cast<std::size_t>(rows); ++row) {
    std::memcpy(to.data + row * to.pitch, from.data + row * from.pitch, bytes);
  }
}

}  // namespace

ColumnRange columns_from(const TensorView& matrix, std::int64_t first) {
  const std::size_t size = size_of(matrix.desc.type);
  return {.data = matrix.data + static_cast<std::size_t>(first) * size,
          .pitch = static_cast<std::size_t>(matrix.desc.shape[1]) * size};
}

std::vector<TensorDesc> SliceColumns::infer(std::span<const TensorDesc> in) const {
  require_count(*this, in, 1);
  require(is_real_matrix(in[0]), *this, in, "takes a real matrix");
  require(first >= 0 && count > 0 && first + count <= in[0].shape[1], *this, in,
          "the slice is outside of the matrix");
  return {described({in[0].shape[0], count}, in[0].type)};
}

void SliceColumns::reference(std::span<const TensorView> in,
                             std::span<const TensorView> out) const {
  copy_columns(columns_from(in[0], first), columns_from(out[0], 0), out[0].desc.shape[0]);
}

std::vector<TensorDesc> ConcatColumns::infer(std::span<const TensorDesc> in) const {
  require(!in.empty(), *this, in, "takes at least one operand");
  std::int64_t columns = 0;
  for (const TensorDesc& desc : in) {
    require(is_real_matrix(desc) && desc.type == in[0].type && desc.shape[0] == in[0].shape[0],
            *this, in, "takes real matrices that differ in their number of columns only");
    columns += desc.shape[1];
  }
  return {described({in[0].shape[0], columns}, in[0].type)};
}

void ConcatColumns::reference(std::span<const TensorView> in,
                              std::span<const TensorView> out) const {
  std::int64_t first = 0;
  for (const TensorView& part : in) {
    copy_columns(columns_from(part, 0), columns_from(out[0], first), part.desc.shape[0]);
    first += part.desc.shape[1];
  }
}

Value slice_columns(Value x, std::int64_t first, std::int64_t count) {
  return emit(SliceColumns(first, count), {x});
}

Value concat_columns(std::span<const Value> parts) {
  return emit_all(ConcatColumns(), parts).front();
}

}  // namespace cnn::layers
