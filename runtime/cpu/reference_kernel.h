#pragma once

#include "runtime/kernel.h"

namespace cnn {

// Runs the plain loops of an op. The op must outlive the kernel.
class ReferenceKernel final : public Kernel {
 public:
  explicit ReferenceKernel(const Op& op) : op_(op) {}
  void run(Stream& stream, const Operands& operands) override;

 private:
  const Op& op_;
};

// Adds a fallback for every local op that no row of the table serves, in plain row-major f32 (i32
// and u8 keep their type).
void add_reference(KernelTable& table);

}  // namespace cnn
