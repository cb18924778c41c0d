#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "runtime/graph.h"
#include "runtime/op.h"

namespace cnn::layers {

// Sums each input over all ranks and multiplies by a factor. in: f32 tensors of one bucket. out:
// the sums, in place where possible. Padding is summed too.
class AllReduce final : public Op {
 public:
  AllReduce(std::size_t b, float f) : bucket(b), factor(f) {}
  std::string_view name() const override { return "all_reduce"; }
  std::vector<TensorDesc> infer(std::span<const TensorDesc> in) const override;
  // Throws Error: the loops of one rank cannot define the op.
  void reference(std::span<const TensorView> in, std::span<const TensorView> out) const override;
  bool is_local() const override { return false; }
  bool may_overwrite(std::size_t input, std::size_t output) const override {
    return input == output;
  }
  Lane lane() const override { return Lane::communicate; }

  std::size_t bucket;  // index: all ranks reduce buckets in this order
  float factor;
};

// Sizes of gradient buckets, in bytes. The first bucket is small, so that the exchange starts
// early; the last is small too, since no computation hides its exchange.
struct BucketSizes {
  std::size_t first = std::size_t{1} << 20U;
  std::size_t others = std::size_t{8} << 20U;
  std::size_t last = std::size_t{1} << 20U;
  // If `small` is not 0, it replaces the sizes above: up to `joined` neighbouring tensors of at
  // most `small` bytes form a bucket; each larger tensor is a bucket of its own.
  std::size_t small = 0, joined = 10;
};

// Returns sizes that put all tensors in one bucket.
constexpr BucketSizes one_bucket() { return {.first = 0, .others = 0, .last = SIZE_MAX}; }

// Cuts a sequence of tensors of these sizes and returns where each bucket ends. Only a bucket of a
// single tensor exceeds its limit.
std::vector<std::size_t> cut_buckets(std::span<const std::size_t> bytes, const BucketSizes& sizes);

// Appends the exchange of gradients in buckets, in the order in which they are computed, and
// replaces them by their sums times the factor. append_update() updates the gradients of one bucket
// together.
void append_exchange(std::span<Value> gradients, const BucketSizes& sizes, float factor);

}  // namespace cnn::layers
