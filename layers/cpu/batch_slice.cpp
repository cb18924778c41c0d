#include "layers/batch_slice.h"

#include <algorithm>
#include <cstring>

#include "layers/cpu/own_kernel.h"
#include "layers/cpu/parallel.h"
#include "layers/cpu/rows.h"
#include "runtime/divide_up.h"

namespace cnn::layers::cpu {

namespace {

// Examples are the outermost dimension of every layout, so a slice is one range of bytes.
void copy_bytes(const std::byte* from, std::byte* to, std::size_t bytes) {
  constexpr std::size_t page = 4096;
  constexpr std::int64_t pages_per_thread = elements_per_thread * 4 / page;
  const auto pages = static_cast<std::int64_t>(divide_up(bytes, page));
  parallel_for(pages, pages_per_thread, [&](std::int64_t first, std::int64_t last) {
    const std::size_t begin = static_cast<std::size_t>(first) * page;
    const std::size_t end = std::min(static_cast<std::size_t>(last) * page, bytes);
    std::memcpy(to + begin, from + begin, end - begin);
  });
}

void slice(const Operands& o, const SliceBatch& op) {
  const std::size_t bytes = o.out[0].desc.bytes();
  const std::size_t example = bytes / static_cast<std::size_t>(op.count);
  copy_bytes(o.in[0].data + example * static_cast<std::size_t>(op.first), o.out[0].data, bytes);
}

void join(const Operands& o) {
  std::byte* to = o.out[0].data;
  for (const TensorView& part : o.in) {
    const std::size_t bytes = part.desc.bytes();
    copy_bytes(part.data, to, bytes);
    to += bytes;
  }
}

// Any type; images in any layout, all operands in the same.
std::optional<KernelSpec> describe(const Signature& request) {
  const Layout layout = request.in[0].layout;
  return in_layout(request, layout == Layout::packed ? channels_together(request) : layout);
}

}  // namespace

void add_batch_slice_rows(KernelTable& table, const Loops& /*loops*/) {
  table.add<SliceBatch>(
      [](const SliceBatch&, const Signature& request) { return describe(request); },
      [](const SliceBatch& op, const Signature&) {
        return own_kernel([op](const Operands& o) { slice(o, op); });
      });
  table.add<ConcatBatch>(
      [](const ConcatBatch&, const Signature& request) { return describe(request); },
      [](const ConcatBatch&, const Signature&) { return own_kernel(join); });
}

}  // namespace cnn::layers::cpu
