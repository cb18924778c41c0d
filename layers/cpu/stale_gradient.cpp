#include "layers/stale_gradient.h"

#include "layers/cpu/own_kernel.h"
#include "layers/cpu/parallel.h"
#include "layers/cpu/rows.h"

namespace cnn::layers::cpu {

namespace {

void keep_gradients(double decay, const Operands& o) {
  parallel_elements(o.out[0].desc, [&](std::int64_t first, std::int64_t n) {
    const auto elements = [first](const TensorView& view) {
      return reinterpret_cast<float*>(at(view, first));
    };
    const float* const gradient = elements(o.in[0]);  // the output may overwrite it
    float* const kept = elements(o.in[1]);
    float* const late = elements(o.out[0]);
    const float* const parameter = o.in.size() == 3 ? elements(o.in[2]) : nullptr;
    for (std::int64_t i = 0; i < n; ++i) {
      const double decayed = parameter != nullptr ? decay * parameter[i] : 0;
      const double today = gradient[i];
      late[i] = static_cast<float>(kept[i] - decayed);
      kept[i] = static_cast<float>(today + decayed);
    }
  });
}

}  // namespace

void add_stale_gradient_rows(KernelTable& table) {
  table.add<StaleGradient>(
      [](const StaleGradient& /*op*/, const Signature& request) -> std::optional<KernelSpec> {
        return like_input(1, request);  // the state's layout is fixed
      },
      [](const StaleGradient& op, const Signature& /*asked*/) {
        return own_kernel([decay = op.decay](const Operands& o) { keep_gradients(decay, o); });
      });
}

}  // namespace cnn::layers::cpu
