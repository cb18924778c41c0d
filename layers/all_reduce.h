#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "runtime/graph.h"
#include "runtime/op.h"

namespace cnn::layers {

// Each output is the sum of that input over all ranks, times a factor. in: f32 tensors of one
// bucket. out: the same, in their place where they can be. Padding takes part.
class AllReduce final : public Op {
 public:
  AllReduce(std::size_t b, float f) : bucket(b), factor(f) {}
  std::string_view name() const override { return "all_reduce"; }
  std::vector<TensorDesc> infer(std::span<const TensorDesc> in) const override;
  // Throws: one rank's loops do not define it.
  void reference(std::span<const TensorView> in, std::span<const TensorView> out) const override;
  bool is_local() const override { return false; }
  bool may_overwrite(std::size_t input, std::size_t output) const override {
    return input == output;
  }
  Lane lane() const override { return Lane::communicate; }

  std::size_t bucket;  // its number: all ranks reduce them in this order
  float factor;
};

// Bytes of gradients that are exchanged together. The first bucket is small, so that the exchange
// starts early; so is the last one, whose time nothing hides.
struct BucketSizes {
  std::size_t first = std::size_t{1} << 20U;
  std::size_t others = std::size_t{8} << 20U;
  std::size_t last = std::size_t{1} << 20U;
  // If not 0, instead of the above: tensors up to this size join their neighbours, at most so many;
  // larger ones stay alone.
  std::size_t small = 0, joined = 10;
};

// All tensors in one bucket.
constexpr BucketSizes one_bucket() { return {.first = 0, .others = 0, .last = SIZE_MAX}; }

// Cuts a row of tensors of these sizes: where each bucket ends. None is larger than its limit,
// unless it is a single tensor.
std::vector<std::size_t> cut_buckets(std::span<const std::size_t> bytes, const BucketSizes& sizes);

// Appends the exchange of gradients in buckets, in the order in which they are made, and puts the
// sums times the factor in their place. Gradients that are exchanged together are updated together,
// see append_update().
void append_exchange(std::span<Value> gradients, const BucketSizes& sizes, float factor);

}  // namespace cnn::layers
