#include "layers/cuda/cudnn/node_timer.h"

#include <algorithm>
#include <iterator>
#include <memory>
#include <vector>

#include "runtime/error.h"

namespace cnn::layers::cuda {
namespace {

// The minimum size of a buffer in bytes, so that an engine may read whole vectors.
constexpr std::size_t granule = 64;

}  // namespace

std::optional<double> NodeTimer::seconds_of(const KernelTable& table, const Op& op,
                                            const Signature& signature) {
  try {
    return run(table, op, signature);
  } catch (const Error&) {  // an engine may fail to run although it has a plan
    return std::nullopt;
  }
}

std::optional<double> NodeTimer::run(const KernelTable& table, const Op& op,
                                     const Signature& signature) {
  const std::optional<KernelSpec> spec = table.describe(op, signature);
  if (!spec) {
    return std::nullopt;
  }
  std::size_t all = spec->workspace;
  for (const auto* descs : {&spec->in, &spec->out}) {
    for (const TensorDesc& desc : *descs) {
      all += desc.extent() + granule;
    }
  }
  if (all > timer_.device().memory_bytes()) {
    return std::nullopt;
  }
  std::vector<Buffer> buffers;
  const auto view_of = [&](const TensorDesc& desc) {
    const bool image = desc.shape.rank() == 4;  // vectors may be variances, which are positive
    buffers.push_back(timer_.filled(std::max(desc.extent(), granule), desc.type, !image));
    return TensorView{.desc = desc, .data = buffers.back().data()};
  };
  Operands operands;
  std::ranges::transform(spec->in, std::back_inserter(operands.in), view_of);
  std::ranges::transform(spec->out, std::back_inserter(operands.out), view_of);
  const Buffer workspace = timer_.device().allocate(std::max(spec->workspace, granule));
  operands.workspace = {workspace.data(), workspace.bytes()};
  const std::unique_ptr<Kernel> kernel = table.make(op, {.in = spec->in, .out = spec->out});
  return timer_.seconds_of([&] { kernel->run(timer_.stream(), operands); });
}

}  // namespace cnn::layers::cuda
