#include "layers/row_slice.h"

#include <cstring>
#include <optional>

#include "layers/cpu/own_kernel.h"
#include "layers/cpu/parallel.h"
#include "layers/cpu/rows.h"
#include "runtime/divide_up.h"

namespace cnn::layers::cpu {

namespace {

// An image as [planes][rows][row_bytes]: a plane is a channel in nchw, a block of 16 channels in
// nchw16c, and all of an example in nhwc.
struct RowPlanes {
  std::byte* data = nullptr;
  std::int64_t planes = 0, rows = 0, row_bytes = 0;

  explicit RowPlanes(const TensorView& image) : data(image.data), rows(image.desc.shape[2]) {
    const Shape& shape = image.desc.shape;
    const Layout layout = image.desc.layout;
    const std::int64_t of_example = layout == Layout::nhwc      ? 1
                                    : layout == Layout::nchw16c ? divide_up(shape[1], 16)
                                                                : shape[1];
    planes = shape[0] * of_example;
    row_bytes = static_cast<std::int64_t>(image.desc.bytes()) / (planes * rows);
  }
  std::byte* row(std::int64_t plane, std::int64_t row) const {
    return data + (plane * rows + row) * row_bytes;
  }
};

// Calls body(plane, row) for rows [first, first + count) of every plane, in parallel.
template <class Body>
void for_each_row(const RowPlanes& image, std::int64_t first, std::int64_t count,
                  const Body& body) {
  const std::int64_t grain = elements_per_thread * 4 / image.row_bytes + 1;
  parallel_for(image.planes * count, grain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      body(i / count, first + i % count);
    }
  });
}

void copy_rows(const Operands& o, const SliceRows& op) {
  const RowPlanes from(o.in[0]), to(o.out[0]);
  for_each_row(to, 0, op.count, [&](std::int64_t plane, std::int64_t row) {
    std::memcpy(to.row(plane, row), from.row(plane, op.first + row),
                static_cast<std::size_t>(to.row_bytes));
  });
}

void surround_rows(const Operands& o, const SliceRowsBackward& op) {
  const RowPlanes from(o.in[0]), to(o.out[0]);
  for_each_row(to, 0, to.rows, [&](std::int64_t plane, std::int64_t row) {
    const auto bytes = static_cast<std::size_t>(to.row_bytes);
    const std::int64_t inside = row - op.first;
    if (inside >= 0 && inside < from.rows) {
      std::memcpy(to.row(plane, row), from.row(plane, inside), bytes);
    } else {
      std::memset(to.row(plane, row), 0, bytes);
    }
  });
}

void stack_rows(const Operands& o) {
  const RowPlanes to(o.out[0]);
  std::int64_t first = 0;
  for (const TensorView& part : o.in) {
    const RowPlanes from(part);
    for_each_row(to, first, from.rows, [&](std::int64_t plane, std::int64_t row) {
      std::memcpy(to.row(plane, row), from.row(plane, row - first),
                  static_cast<std::size_t>(to.row_bytes));
    });
    first += from.rows;
  }
}

// Any type; images in any layout, all operands in the same.
std::optional<KernelSpec> describe_row_copy(const Signature& request) {
  const Layout layout = request.in[0].layout;
  return in_layout(request, layout == Layout::packed ? channels_together(request) : layout);
}

}  // namespace

void add_row_slice_rows(KernelTable& table, const Loops& /*loops*/) {
  table.add<SliceRows>(
      [](const SliceRows&, const Signature& request) { return describe_row_copy(request); },
      [](const SliceRows& op, const Signature&) {
        return own_kernel([op](const Operands& o) { copy_rows(o, op); });
      });
  table.add<SliceRowsBackward>(
      [](const SliceRowsBackward&, const Signature& request) { return describe_row_copy(request); },
      [](const SliceRowsBackward& op, const Signature&) {
        return own_kernel([op](const Operands& o) { surround_rows(o, op); });
      });
  table.add<ConcatRows>(
      [](const ConcatRows&, const Signature& request) { return describe_row_copy(request); },
      [](const ConcatRows&, const Signature&) { return own_kernel(stack_rows); });
}

}  // namespace cnn::layers::cpu
