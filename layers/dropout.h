#pragma once

#include "runtime/graph.h"
#include "runtime/op.h"

namespace cnn::layers {

// y = x / keep if the element is kept, else 0 x (layers/gate.h). The mask is a function of (seed,
// step, position): element i (row-major over the logical shape) is kept if splitmix64(seed, step,
// i) is below keep, so forward pass, gradient and recomputation agree without storing it. in: x,
// step i32 []. out: y. The gradient is the same op on dy.
class Dropout final : public Op {
 public:
  Dropout(double k, std::uint64_t s) : keep(k), seed(s) {}
  std::string_view name() const override { return "dropout"; }
  std::vector<TensorDesc> infer(std::span<const TensorDesc> in) const override;
  void reference(std::span<const TensorView> in, std::span<const TensorView> out) const override;
  std::vector<std::optional<Value>> backward(const Backprop& backprop) const override;
  bool may_overwrite(std::size_t input, std::size_t output) const override {
    return input == 0 && output == 0;
  }

  double keep;
  std::uint64_t seed;
};

// Returns whether element `index` is kept; kernels must agree with it bit for bit. Compares 24
// random bits with keep * 2^24.
bool keeps(std::uint64_t seed, std::int32_t step, std::uint64_t index, double keep);

// Returns x itself outside training or if Traits::dropout is off. The step is the graph's input
// "global_step" (i32 []), created on first use; the seed combines Traits::seed and a number per
// dropout layer.
Value dropout(Value x, double keep);

// Returns the graph's input "global_step", i32 [].
Value global_step(Graph& graph);

}  // namespace cnn::layers
