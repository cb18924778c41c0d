#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "layers/update_rule.h"
#include "runtime/graph.h"
#include "runtime/op.h"

namespace cnn::layers {

// Updates a bucket of parameters in one pass. With g = gradient / loss scale + weight_decay * w (if
// the parameter decays), then clipped:
//   sgd       w -= lr g
//   momentum  a = m a + g; w -= lr g + lr m a                        (Nesterov)
//   rmsprop   s = d s + (1 - d) g^2; b = m b + lr g / sqrt(s + e); w -= b
//   adam      m = b1 m + (1 - b1) g; v = b2 v + (1 - b2) g^2;
//             w -= lr sqrt(1 - beta2_power) / (1 - beta1_power) m / (sqrt(v) + e)
// in: learning_rate f32 [], then with automatic_loss_scale: loss_scale f32 [] and found_inf i32 []
// (if it is not 0, the op writes nothing), then with powers: beta1_power f32 [], beta2_power f32
// [], then all parameters (mutated), all gradients, for each slot kind the slots of all parameters
// (mutated), and for each copied parameter its copy (f16 or bf16; overwritten by the new values,
// rounded). A parameter, its gradient, slots and copy share one layout: the rule is element-wise,
// padding stays zero. out: f32 [parameters], for each parameter the sum of w^2 / 2 before the
// update, accumulated in double; 0 for parameters that do not decay, or without weight decay.
class Update final : public Op {
 public:
  Update(UpdateAttributes a, std::size_t n) : attributes(std::move(a)), parameters(n) {}
  std::string_view name() const override { return "update"; }
  std::vector<TensorDesc> infer(std::span<const TensorDesc> in) const override;
  void reference(std::span<const TensorView> in, std::span<const TensorView> out) const override;
  bool mutates(std::size_t input) const override;
  bool reads(std::size_t input) const override { return input < first_copy(); }

  // The scalar operands of a step, which lie on the host.
  struct Scalars {
    double rate = 0;     // includes the bias corrections if the rule has powers
    double unscale = 1;  // 1 / loss scale
    bool skip = false;   // write nothing
  };
  Scalars scalars(std::span<const TensorView> in) const;

  std::size_t first_parameter() const;  // index of the first parameter among the inputs
  std::size_t first_gradient() const { return first_parameter() + parameters; }
  std::size_t first_slot() const { return first_gradient() + parameters; }
  std::size_t first_copy() const { return first_slot() + parameters * slots(); }
  std::size_t slots() const;                                        // per parameter
  std::optional<std::size_t> copy_of(std::size_t parameter) const;  // index among the inputs

  UpdateAttributes attributes;
  std::size_t parameters;
};

// Sums all elements of all inputs in sequence, in double: the division into inputs changes no bit.
// in: f32 [n] each. out: f32 [].
class SumInOrder final : public Op {
 public:
  std::string_view name() const override { return "sum_in_order"; }
  std::vector<TensorDesc> infer(std::span<const TensorDesc> in) const override;
  void reference(std::span<const TensorView> in, std::span<const TensorView> out) const override;
};

// found_inf = 1 if any element of any input is inf or nan, else 0. in: gradients. out: i32 [].
class FoundInf final : public Op {
 public:
  std::string_view name() const override { return "found_inf"; }
  std::vector<TensorDesc> infer(std::span<const TensorDesc> in) const override;
  void reference(std::span<const TensorView> in, std::span<const TensorView> out) const override;
};

// After a step: found_inf -> scale /= 2, count = 0; else count < n -> count += 1; else scale *= 2,
// count = 0. in: loss_scale f32 [] (mutated), count f32 [] (mutated), found_inf i32 []. No output.
class AdvanceLossScale final : public Op {
 public:
  explicit AdvanceLossScale(double n) : every_n(n) {}
  std::string_view name() const override { return "advance_loss_scale"; }
  std::vector<TensorDesc> infer(std::span<const TensorDesc> in) const override;
  void reference(std::span<const TensorView> in, std::span<const TensorView> out) const override;
  bool mutates(std::size_t input) const override { return input < 2; }

  double every_n;
};

// beta1_power *= beta1, beta2_power *= beta2 unless found_inf. in: both powers f32 [] (mutated),
// [found_inf i32 []]. No output.
class AdvanceAdam final : public Op {
 public:
  AdvanceAdam(double b1, double b2) : beta1(b1), beta2(b2) {}
  std::string_view name() const override { return "advance_adam"; }
  std::vector<TensorDesc> infer(std::span<const TensorDesc> in) const override;
  void reference(std::span<const TensorView> in, std::span<const TensorView> out) const override;
  bool mutates(std::size_t input) const override { return input < 2; }

  double beta1, beta2;
};

struct OptimizerOptions {
  UpdateAttributes update;               // `decay` is filled from the parameters
  double loss_scale_every_n = 1000;      // with automatic_loss_scale; starts at update.loss_scale
  std::size_t bucket_bytes = 64u << 20;  // parameters in one Update node
};

// Returns d loss / d loss, the start of gradients(): the constant loss scale, or the state
// "loss_scale".
Value loss_seed(Graph& graph, const OptimizerOptions& options);

// Appends the update of all parameters: states for slots ("<parameter>/Momentum"...), the learning
// rate as input "learning_rate" f32 [], Update nodes in buckets in the order in which gradients are
// computed, and the nodes that advance scale and powers. Returns the L2 sum (f32 []), bitwise equal
// for all bucket sizes; multiply it by weight_decay for the loss. parameters[i] belongs to
// gradients[i].
Value append_update(Graph& graph, std::span<const Value> parameters,
                    std::span<const Value> gradients, const OptimizerOptions& options);

}  // namespace cnn::layers
