#include "layers/batch_slice.h"
#include "layers/cuda/own_kernel.h"
#include "layers/cuda/rows.h"

// Slicing and concatenating batches. The batch is the outermost dimension, so a slice is one
// contiguous range of bytes, which a device-to-device copy moves without a kernel of ours.
namespace cnn::layers::cuda {

namespace {

void slice(Stream& stream, const Operands& o, const SliceBatch& op) {
  const std::size_t bytes = o.out[0].desc.bytes();
  const std::size_t example = bytes / static_cast<std::size_t>(op.count);
  stream.copy(o.out[0].data, o.in[0].data + example * static_cast<std::size_t>(op.first), bytes);
}

void join(Stream& stream, const Operands& o) {
  std::byte* to = o.out[0].data;
  for (const TensorView& part : o.in) {
    const std::size_t bytes = part.desc.bytes();
    stream.copy(to, part.data, bytes);
    to += bytes;
  }
}

}  // namespace

void add_batch_slice_rows(KernelTable& table) {
  table.add<SliceBatch>(
      [](const SliceBatch&, const Signature& request) { return in_nhwc(request); },
      [](const SliceBatch& op, const Signature&) {
        return own_kernel([op](Stream& stream, const Operands& o) { slice(stream, o, op); });
      });
  table.add<ConcatBatch>(
      [](const ConcatBatch&, const Signature& request) { return in_nhwc(request); },
      [](const ConcatBatch&, const Signature&) { return own_kernel(join); });
}

}  // namespace cnn::layers::cuda
