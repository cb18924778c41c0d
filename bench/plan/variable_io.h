#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "runtime/device.h"
#include "runtime/kernel.h"
#include "runtime/variables.h"

namespace cnn::bench {

// Returns the arena bytes that VariableIo needs: plain values of a part of a variable and their
// conversion. Requires no device. Throws Error if no kernel converts a variable.
std::size_t variable_io_bytes(const KernelTable& kernels, const Variables& variables);

// Copies variables between the device, where they may be packed, and plain row-major f32 values on
// the host; large ones in parts. Allocates nothing on the device. Must not run during a step.
class VariableIo {
 public:
  // arena: unused device bytes, 64-byte aligned, at least variable_io_bytes(). References must
  // outlive this object.
  VariableIo(Device& device, const KernelTable& kernels, Variables& variables,
             std::span<std::byte> arena);

  // values: shape.elements() floats in the logical order (O, I, H, W). Only saved variables can be
  // read.
  void write(const Variable& variable, std::span<const float> values);
  void read(const Variable& variable, std::span<float> values);

  // Sets the initial values of every variable that is not derived, by seed and name.
  void initialize(std::uint64_t seed);

  // Returns the highest end in the arena of an operand given to a kernel or a copy.
  std::size_t measured_peak_bytes() const { return measured_peak_; }

 private:
  struct Part;
  // A part's values in plain order, and as the variable holds them; both at one place where these
  // are the same.
  struct PartViews {
    TensorView plain, variable;
  };
  static std::vector<Part> parts_of(const TensorDesc& desc);
  friend std::size_t variable_io_bytes(const KernelTable& kernels, const Variables& variables);

  PartViews views_of(const TensorView& variable, const Part& part) const;
  void upload(const TensorView& to, std::size_t first, std::span<const float> values);
  void convert_to_stored(const PartViews& views);
  void write(const TensorView& variable, const Part& part, std::span<const float> values);
  void read(const TensorView& variable, const Part& part, std::span<float> values);
  void convert(const TensorView& from, const TensorView& to);

  const KernelTable& kernels_;
  Variables& variables_;
  std::span<std::byte> arena_;
  std::unique_ptr<Stream> stream_;
  std::size_t measured_peak_ = 0;
};

}  // namespace cnn::bench
