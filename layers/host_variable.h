#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "layers/update_rule.h"
#include "runtime/graph.h"
#include "runtime/kernel.h"
#include "runtime/op.h"

// Ops of a step whose largest variables lie in host memory and are on the device only while nodes
// use them, as in ZeRO-Offload: see layers/passes/host_variables.h.
namespace cnn::layers {

// Elements of a variable for which an UpdateSlice adds up one sum of squares.
inline constexpr std::int64_t elements_per_sum = 8192;
// A slice that begins at a multiple of so many elements begins where the kernels of all devices
// begin a sum: then the sum of all slices has the bits of that of the whole parameter.
inline constexpr std::int64_t elements_per_part = 16384;

// Returns the elements in memory of an f32 tensor, with the padding of its layout.
std::int64_t stored_floats(const TensorDesc& desc);

// Copies a variable from the host to the device: all of it, with its layout, or a slice of its
// stored elements, from `first` on, as an f32 tensor of any shape. in: the variable, f32.
class LoadVariable final : public Op {
 public:
  LoadVariable() = default;
  LoadVariable(std::int64_t f, Shape shape) : first(f), slice(shape) {}
  std::string_view name() const override { return "load_variable"; }
  std::vector<TensorDesc> infer(std::span<const TensorDesc> in) const override;
  void reference(std::span<const TensorView> in, std::span<const TensorView> out) const override;
  Lane lane() const override { return Lane::copy_in; }

  std::int64_t first = 0;
  std::optional<Shape> slice;  // nothing: the whole variable
};

// Copies a slice, f32 [n], back to the stored elements of its variable from `first` on.
// in: the slice, the variable (mutated). No output.
class StoreVariable final : public Op {
 public:
  explicit StoreVariable(std::int64_t f) : first(f) {}
  std::string_view name() const override { return "store_variable"; }
  std::vector<TensorDesc> infer(std::span<const TensorDesc> in) const override;
  void reference(std::span<const TensorView> in, std::span<const TensorView> out) const override;
  bool mutates(std::size_t input) const override { return input == 1; }
  Lane lane() const override { return Lane::copy_out; }

  std::int64_t first;
};

// Updates a slice of one parameter by the rule of Update, to the same bits. in: learning_rate f32
// [], then with powers: beta1_power f32 [], beta2_power f32 [], then the slice f32 [n] (mutated),
// the gradient of the whole parameter or of a part of it, and the slice of each slot (mutated).
// out: u8, one double for every elements_per_sum elements: the sum of w^2 before the update; 0
// without decay. A kernel may put the sum of neighbours into the first of them and 0 into the
// others.
class UpdateSlice final : public Op {
 public:
  // of: for this parameter alone, without copies and automatic loss scale.
  UpdateSlice(UpdateAttributes update_attributes, std::int64_t f)
      : attributes(std::move(update_attributes)), first(f) {}
  std::string_view name() const override { return "update_slice"; }
  std::vector<TensorDesc> infer(std::span<const TensorDesc> in) const override;
  void reference(std::span<const TensorView> in, std::span<const TensorView> out) const override;
  bool mutates(std::size_t input) const override {
    return input == slice_index() || input > slice_index() + 1;
  }

  std::size_t slice_index() const;  // index of the slice among the inputs; the gradient follows

  UpdateAttributes attributes;
  std::int64_t first;  // of the slice, among the stored elements of the gradient
};

// Half of the sum of squares of a whole parameter, in the order of Update. in: the sums of its
// slices, in their order. out: f32 [1].
class HalfSumOfSlices final : public Op {
 public:
  std::string_view name() const override { return "half_sum_of_slices"; }
  std::vector<TensorDesc> infer(std::span<const TensorDesc> in) const override;
  void reference(std::span<const TensorView> in, std::span<const TensorView> out) const override;
};

// Returns the bytes that a node of one of these ops reads and writes, which are not those of its
// operands; nothing for other ops.
std::optional<double> moved_bytes(const Op& op, std::span<const TensorDesc> in,
                                  std::span<const TensorDesc> out);

// Returns whether an operand that a node changes in place then has all of its new value: not a
// variable on the host of which only some slices are stored, nor such a slice by itself.
bool completes_operand(const Op& op, std::span<const TensorDesc> in);

// Adds kernels of LoadVariable and StoreVariable for any device: they are copies of a stream.
void add_host_variable_rows(KernelTable& table);

}  // namespace cnn::layers
