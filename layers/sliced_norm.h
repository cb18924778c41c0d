#pragma once

#include <cstdint>
#include <vector>

#include "layers/batch_norm.h"
#include "runtime/op.h"

// The parts of a batch norm whose batch is computed in slices: the statistics, and the sums of the
// gradient, need all slices before the first one can be finished. These ops have no gradients of
// their own; slice_norms() puts them in the place of BatchNorm and BatchNormBackward. The forward
// pass ends with BatchNormInference, whose mean and variance are those of the batch.
namespace cnn::layers {

// mean[c] and squares[c] = sum (x - mean)^2 over N, H, W of one slice. in: x [N,C,H,W]. out: mean
// f32 [C], squares f32 [C].
class NormMoments final : public Op {
 public:
  std::string_view name() const override { return "batch_norm_moments"; }
  std::vector<TensorDesc> infer(std::span<const TensorDesc> in) const override;
  void reference(std::span<const TensorView> in, std::span<const TensorView> out) const override;
  // The mean must be known before the first square.
  std::size_t reread_bytes(std::span<const TensorDesc> in) const override { return in[0].bytes(); }
};

// Merges the moments of slices, one after another in the order of the operands, into the mean and
// the biased variance of the batch (Chan's formula). in: for each slice mean, squares, all f32 [C].
// out: mean f32 [C], variance f32 [C].
class MergeMoments final : public Op {
 public:
  // counts: values per channel, N H W, of each slice.
  explicit MergeMoments(std::vector<double> c) : counts(std::move(c)) {}
  std::string_view name() const override { return "batch_norm_merge_moments"; }
  std::vector<TensorDesc> infer(std::span<const TensorDesc> in) const override;
  void reference(std::span<const TensorView> in, std::span<const TensorView> out) const override;

  std::vector<double> counts;
};

// The sums of BatchNormBackward over one slice, dbeta = sum g and dgamma = sum g xhat, and g if a
// residual takes it. in: as BatchNormBackward without a mask. out: dbeta, dgamma, both f32 [C], [g
// if relu and residual]. g may overwrite dy or dy2.
class NormGradientSums final : public Op {
 public:
  explicit NormGradientSums(BatchNormAttributes a, bool two_gradients = false)
      : attributes(std::move(a)), joined(two_gradients) {}
  bool passes_gradient() const { return attributes.relu && attributes.residual; }
  std::size_t index_of_dy() const { return NormOperandIndices(attributes.scale).variance + 1; }
  std::string_view name() const override { return "batch_norm_gradient_sums"; }
  std::vector<TensorDesc> infer(std::span<const TensorDesc> in) const override;
  void reference(std::span<const TensorView> in, std::span<const TensorView> out) const override;
  bool may_overwrite(std::size_t input, std::size_t output) const override;

  BatchNormAttributes attributes;
  bool joined;
};

// The gradient dx of BatchNormBackward for one slice, from the sums over the batch, which has
// `count` values per channel. in: x, [gamma], beta, m, v, dbeta, dgamma, g, [dy2]. out: dx. With
// relu and without a residual, g is dy (plus dy2 if joined) before the gate, which the op computes
// again from x; otherwise it is the gated gradient. dx may overwrite x, g or dy2.
class NormInputGradient final : public Op {
 public:
  NormInputGradient(BatchNormAttributes a, double n, bool two_gradients = false)
      : attributes(std::move(a)), count(n), joined(two_gradients) {}
  bool gates() const { return attributes.relu && !attributes.residual; }
  // Returns the index of operand dbeta; dgamma, g and dy2 follow it.
  std::size_t index_of_sums() const { return NormOperandIndices(attributes.scale).variance + 1; }
  std::string_view name() const override { return "batch_norm_input_gradient"; }
  std::vector<TensorDesc> infer(std::span<const TensorDesc> in) const override;
  void reference(std::span<const TensorView> in, std::span<const TensorView> out) const override;
  bool may_overwrite(std::size_t input, std::size_t output) const override;

  BatchNormAttributes attributes;
  double count;
  bool joined;
};

}  // namespace cnn::layers
