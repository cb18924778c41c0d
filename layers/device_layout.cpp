#include "layers/device_layout.h"

#include <cstdint>
#include <limits>
#include <string>

#include "layers/optimizer.h"
#include "runtime/error.h"

namespace cnn::layers {

void require_indexable(const TensorDesc& desc) {
  constexpr std::int64_t most = std::numeric_limits<std::int32_t>::max();
  const bool has_gaps = desc.pitch > 0 && desc.shape.rank() == 4;
  const std::int64_t last =
      has_gaps ? desc.shape[0] * desc.shape[2] * desc.shape[3] * desc.pitch : desc.shape.elements();
  if (last > most) {
    throw Error("a tensor " + to_string(desc) + " has " + std::to_string(last) +
                " elements, but the CUDA backend takes at most " + std::to_string(most) +
                ": make the batch or the image smaller");
  }
}

KernelSpec in_nhwc(const Signature& request, std::size_t workspace) {
  KernelSpec spec{.workspace = workspace, .in = request.in, .out = request.out};
  for (auto* descs : {&spec.in, &spec.out}) {
    for (TensorDesc& desc : *descs) {
      require_indexable(desc);
      desc.layout = desc.shape.rank() == 4 ? Layout::nhwc : Layout::nchw;
      desc.packing = nullptr;
      desc.pitch = 0;
    }
  }
  return spec;
}

void keep_pitch(TensorDesc& answer, const TensorDesc& request) {
  const bool aligned = request.pitch * static_cast<std::int64_t>(size_of(request.type)) % 16 == 0;
  answer.pitch = request.layout == Layout::nhwc && aligned ? request.pitch : 0;
}

KernelSpec like_parameters(const Update& op, const Signature& request) {
  KernelSpec spec{.in = request.in, .out = request.out};
  for (std::size_t i = op.first_gradient(); i < op.first_copy(); ++i) {
    spec.in[i] = spec.in[op.first_parameter() + (i - op.first_gradient()) % op.parameters];
  }
  for (std::size_t i = 0; i < op.attributes.copied.size(); ++i) {
    TensorDesc& copy = spec.in[op.first_copy() + i];
    const DataType type = copy.type;
    copy = spec.in[op.first_parameter() + op.attributes.copied[i]];
    copy.type = type;
  }
  return spec;
}

}  // namespace cnn::layers
