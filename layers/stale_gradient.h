#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "runtime/graph.h"
#include "runtime/op.h"

namespace cnn::layers {

// Delays a gradient by one step: outputs the gradient of the previous step and keeps this step's
// for the next one. in: gradient f32, kept gradient f32 (mutated), and with a decay the parameter
// f32. out: the kept gradient less decay times the parameter. The op keeps the gradient plus decay
// times the parameter, so that an update which adds the decay of the current parameter in effect
// adds the decay of the previous step's.
class StaleGradient final : public Op {
 public:
  explicit StaleGradient(double d) : decay(d) {}
  std::string_view name() const override { return "stale_gradient"; }
  std::vector<TensorDesc> infer(std::span<const TensorDesc> in) const override;
  void reference(std::span<const TensorView> in, std::span<const TensorView> out) const override;
  bool mutates(std::size_t input) const override { return input == 1; }
  bool may_overwrite(std::size_t input, std::size_t /*output*/) const override {
    return input == 0;
  }

  double decay;
};

// Replaces each gradient by the one of the previous step, which is zero in the first step. The kept
// gradients are states named "<parameter>/stale_gradient" that checkpoints omit. gradients[i]
// belongs to parameters[i]. weight_decay: the factor that the update adds later for parameters that
// decay.
void append_stale_gradients(std::span<const Value> parameters, std::span<Value> gradients,
                            double weight_decay);

}  // namespace cnn::layers
