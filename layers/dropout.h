#pragma once

#include "runtime/graph.h"
#include "runtime/op.h"

namespace cnn::layers {

// y = x / keep where the element is kept, else 0 x (layers/gate.h). The mask is a function of
// (seed, step, position): element i (row-major over the logical shape) is kept if splitmix64(seed,
// step, i) falls below keep, so forward, gradient and a recomputation agree without storing it. in:
// x, step i32 []. out: y. Its gradient is the same op on dy.
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

// Whether element `index` is kept; what kernels must agree with, bit for bit. 24 random bits
// against keep * 2^24.
bool keeps(std::uint64_t seed, std::int32_t step, std::uint64_t index, double keep);

// x itself outside training or with Traits::dropout off. The step is the graph's input
// "global_step" (i32 []), made if it is not there yet; the seed is Traits::seed and a number per
// dropout layer.
Value dropout(Value x, double keep);

// The graph's input "global_step", i32 [].
Value global_step(Graph& graph);

}  // namespace cnn::layers
