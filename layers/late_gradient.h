#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "runtime/graph.h"
#include "runtime/op.h"

namespace cnn::layers {

// The gradient of the step before; this step's is kept for the next. in: gradient f32, what is kept
// f32 (mutated), and with a decay the parameter f32. out: what was kept, less decay times the
// parameter. Kept is the gradient, plus decay times the parameter: so that an update which adds the
// decay of today's parameter adds that of the step before in effect.
class LateGradient final : public Op {
 public:
  explicit LateGradient(double d) : decay(d) {}
  std::string_view name() const override { return "late_gradient"; }
  std::vector<TensorDesc> infer(std::span<const TensorDesc> in) const override;
  void reference(std::span<const TensorView> in, std::span<const TensorView> out) const override;
  bool mutates(std::size_t input) const override { return input == 1; }
  bool may_overwrite(std::size_t input, std::size_t /*output*/) const override {
    return input == 0;
  }

  double decay;
};

// Puts those of the step before in the place of the gradients, zeros at first: states
// "<parameter>/late_gradient", which checkpoints do not keep. parameters[i] goes with gradients[i];
// weight_decay: that the update will add, of parameters that decay.
void append_late_gradients(std::span<const Value> parameters, std::span<Value> gradients,
                           double weight_decay);

}  // namespace cnn::layers
