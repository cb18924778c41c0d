#include "bench/report/forward_check.h"

#include <fmt/format.h>

namespace cnn::bench {

void ForwardCheck::end(const RunEnd& end) {
  if (!has_run_) {
    return;
  }
  const std::string tensor = find_tensor_().tensor;
  if (tensor.empty()) {
    return;
  }
  console_.note(fmt::format(
      "forward only, global step {}: the first tensor in memory that is not finite is {}; examples "
      "whose logits are not finite count as wrong: use another checkpoint, or check the data",
      end.global_step, tensor));
  result_["non_finite"] = tensor;
}

}  // namespace cnn::bench
