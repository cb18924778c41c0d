#include "layers/column_slice.h"

#include <algorithm>
#include <cstring>

#include "layers/cpu/own_kernel.h"
#include "layers/cpu/parallel.h"
#include "layers/cpu/rows.h"

namespace cnn::layers::cpu {

namespace {

// Copies all columns of the narrower matrix.
void copy_columns(const ColumnRange& from, const ColumnRange& to, std::int64_t rows) {
  const std::size_t bytes = std::min(from.pitch, to.pitch);
  const std::int64_t rows_per_thread =
      elements_per_thread * 4 / static_cast<std::int64_t>(bytes) + 1;
  parallel_for(rows, rows_per_thread, [&](std::int64_t begin, std::int64_t end) {
    for (auto row = static_cast<std::size_t>(begin); row < static_cast<std::size_t>(end); ++row) {
      std::memcpy(to.data + row * to.pitch, from.data + row * from.pitch, bytes);
    }
  });
}

void join_columns(const Operands& o) {
  std::int64_t first = 0;
  for (const TensorView& part : o.in) {
    copy_columns(columns_from(part, 0), columns_from(o.out[0], first), part.desc.shape[0]);
    first += part.desc.shape[1];
  }
}

}  // namespace

void add_column_slice_rows(KernelTable& table, const Loops& /*loops*/) {
  const auto describe_any = [](const auto& /*op*/, const Signature& request) {
    return std::optional(in_layout(request, Layout::nchw));
  };
  table.add<SliceColumns>(describe_any, [](const SliceColumns& op, const Signature&) {
    return own_kernel([first = op.first](const Operands& o) {
      copy_columns(columns_from(o.in[0], first), columns_from(o.out[0], 0), o.out[0].desc.shape[0]);
    });
  });
  table.add<ConcatColumns>(describe_any, [](const ConcatColumns&, const Signature&) {
    return own_kernel(join_columns);
  });
}

}  // namespace cnn::layers::cpu
