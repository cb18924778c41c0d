#include "layers/cuda/flat.cuh"
#include "layers/cuda/rows.h"
#include "layers/stale_gradient.h"

namespace cnn::layers::cuda {

namespace {

// Outputs the kept gradient of the previous step, and keeps this step's. `late` may alias
// `gradient`. parameter: nullptr if it has no weight decay.
__global__ void __launch_bounds__(flat_threads)
    keep_gradients(const float* gradient, float* kept, const float* parameter, float* late,
                   std::int64_t n, double decay) {
  for (std::int64_t i = flat_thread(); i < n; i += flat_stride()) {
    const double decayed = parameter != nullptr ? decay * parameter[i] : 0;
    const double today = gradient[i];
    late[i] = static_cast<float>(kept[i] - decayed);
    kept[i] = static_cast<float>(today + decayed);
  }
}

// Returns the spec with all operands in the layout of the kept gradient, nchw or nhwc.
KernelSpec describe_late(const Signature& request) {
  KernelSpec spec = in_nhwc(request);
  for (auto* const side : {&spec.in, &spec.out}) {
    for (TensorDesc& desc : *side) {
      if (request.in[1].layout == Layout::nchw) {
        desc.layout = Layout::nchw;
      }
    }
  }
  return spec;
}

}  // namespace

void add_stale_gradient_rows(KernelTable& table) {
  table.add<StaleGradient>(
      [](const StaleGradient&, const Signature& request) { return describe_late(request); },
      [](const StaleGradient& op, const Signature&) {
        return own_kernel([decay = op.decay](Stream& stream, const Operands& o) {
          const std::int64_t count = o.out[0].desc.shape.elements();
          launch_flat(keep_gradients, count, stream, data_of<const float>(o.in[0]),
                      data_of<float>(o.in[1]),
                      o.in.size() == 3 ? data_of<const float>(o.in[2]) : nullptr,
                      data_of<float>(o.out[0]), count, decay);
        });
      });
}

}  // namespace cnn::layers::cuda
