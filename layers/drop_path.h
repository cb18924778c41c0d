#pragma once

#include <cstdint>

#include "runtime/graph.h"
#include "runtime/op.h"

namespace cnn::layers {

// The fraction of examples that DropPath keeps: it falls linearly from 1 at step 0 to 1 - drop /
// 2^24 at `steps`, and stays there. Integer arithmetic gives the same bits on every device.
struct DropPathSchedule {
  std::uint32_t drop = 0;  // of 2^24
  std::int32_t steps = 1;  // at least 1

  // Returns the kept fraction at a step, as a multiple of 2^-24.
  std::uint32_t kept(std::int32_t step) const {
    const std::int64_t done = step < 0 ? 0 : step < steps ? step : steps;
    return (1U << 24) - static_cast<std::uint32_t>(drop * done / steps);
  }
};

// Drops whole examples of a branch (Larsson et al., 2016): with k the kept fraction, y[n] = x[n] /
// k if example n is kept, else 0 x[n] (layers/gate.h). The mask is a function of (seed, step, n)
// only, so forward pass, gradient, recomputation and resumed runs agree without storing it. in: x
// [N, ...], step i32 []. out: y. The gradient is the same op on dy.
class DropPath final : public Op {
 public:
  DropPath(DropPathSchedule of_steps, std::uint64_t s) : schedule(of_steps), seed(s) {}
  std::string_view name() const override { return "drop_path"; }
  std::vector<TensorDesc> infer(std::span<const TensorDesc> in) const override;
  void reference(std::span<const TensorView> in, std::span<const TensorView> out) const override;
  std::vector<std::optional<Value>> backward(const Backprop& backprop) const override;
  bool may_overwrite(std::size_t input, std::size_t output) const override {
    return input == 0 && output == 0;
  }

  DropPathSchedule schedule;
  std::uint64_t seed;
};

// Returns whether a step keeps an example; kernels must agree with it bit for bit.
bool keeps_path(const DropPath& op, std::int32_t step, std::uint64_t example);

// Drops examples with a probability that rises to `drop` at step `steps`. Returns x itself outside
// training, if Traits::dropout is off, or if `drop` is 0. The step is the graph's input
// "global_step"; the seed combines Traits::seed and a number per branch.
Value drop_path(Value x, double drop, std::int32_t steps);

}  // namespace cnn::layers
