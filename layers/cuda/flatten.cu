#include "layers/cuda/own_kernel.h"
#include "layers/cuda/rows.h"
#include "layers/dense.h"

// Flatten and Unflatten. An image [N,C,H,W] in nhwc has the bytes of the matrix [N, H*W*C], so both
// ops are one contiguous copy.
namespace cnn::layers::cuda {

namespace {

void copy_all(Stream& stream, const Operands& o) {
  stream.copy(o.out[0].data, o.in[0].data, o.out[0].desc.bytes());
}

}  // namespace

void add_flatten_rows(KernelTable& table) {
  table.add<Flatten>([](const Flatten&, const Signature& request) { return in_nhwc(request); },
                     [](const Flatten&, const Signature&) { return own_kernel(copy_all); });
  table.add<Unflatten>([](const Unflatten&, const Signature& request) { return in_nhwc(request); },
                       [](const Unflatten&, const Signature&) { return own_kernel(copy_all); });
}

}  // namespace cnn::layers::cuda
