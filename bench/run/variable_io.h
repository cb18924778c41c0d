#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "runtime/device.h"
#include "runtime/kernel.h"
#include "runtime/variables.h"

namespace cnn::bench {

// Moves variables between the device, where they may be packed, and plain row-major f32 values on
// the host. Not for use while a step runs.
class VariableIo {
 public:
  // References must outlive this object.
  VariableIo(Device& device, const KernelTable& kernels, Variables& variables);

  // values: shape.elements() floats in the logical order (O, I, H, W).
  void write(const Variable& variable, std::span<const float> values);
  void read(const Variable& variable, std::span<float> values);

  // Starting values of every variable that is not derived of others, by seed and name.
  void initialize(std::uint64_t seed);

 private:
  void run(const Op& op, std::vector<TensorView> in, std::vector<TensorView> out);
  Buffer& plain_buffer(std::size_t bytes);

  Device& device_;
  const KernelTable& kernels_;
  Variables& variables_;
  std::unique_ptr<Stream> stream_;
  Buffer plain_;  // device memory for one plain tensor; grows to the largest that needed it
};

}  // namespace cnn::bench
