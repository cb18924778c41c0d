#include "runtime/cpu/reference_kernel.h"

#include <algorithm>
#include <iterator>

namespace cnn {
namespace {

std::vector<TensorDesc> all_plain(const std::vector<TensorDesc>& descs) {
  std::vector<TensorDesc> result;
  std::transform(descs.begin(), descs.end(), std::back_inserter(result), plain);
  return result;
}

}  // namespace

void ReferenceKernel::run(Stream& stream, const Operands& operands) {
  stream.host([op = &op_, &operands] { op->reference(operands.in, operands.out); });
}

void add_reference(KernelTable& table) {
  table.otherwise(
      [](const Op& op, const Signature& request) -> std::optional<KernelSpec> {
        if (op.lane() == Lane::communicate) {
          return std::nullopt;  // loops on one rank cannot move data between ranks
        }
        return KernelSpec{
            .workspace = 0, .in = all_plain(request.in), .out = all_plain(request.out)};
      },
      [](const Op& op, const Signature& /*signature*/) {
        return std::make_unique<ReferenceKernel>(op);
      },
      Provider::loops);
}

}  // namespace cnn
