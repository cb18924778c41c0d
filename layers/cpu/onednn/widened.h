#pragma once

#include <string>
#include <vector>

#include "layers/cpu/onednn/onednn.h"

// Operands of 16 bits for primitives that run in f32: where the processor multiplies f32 faster,
// storage and traffic between kernels are halved and products cost no more than in f32.
namespace cnn::layers::cpu {

// Whether an operand of the plan is wider than asked: stored narrow, converted inside the kernel.
bool is_widened(const Plan& plan, const Signature& asked);

// The spec of a WidenedKernel: the plan's, with the types asked, and room for wide copies.
KernelSpec widened_spec(const Plan& plan, const Signature& asked, const dnnl::engine& engine);

// A reorder of each narrow input into the workspace, the primitive, a reorder of each output.
class WidenedKernel final : public Kernel {
 public:
  // signature: as the operands lie, that is a widened_spec of the plan.
  WidenedKernel(const Plan& plan, const Signature& signature, const dnnl::engine& engine,
                const std::string& name);
  void run(Stream& stream, const Operands& operands) override;

 private:
  struct Conversion {
    std::size_t operand;      // of the kernel
    std::size_t offset;       // of the wide copy in the workspace
    PrimitiveKernel reorder;  // narrow to wide, or back
    Operands operands;        // one in, one out; addresses change with every run
  };

  void execute(const Operands& operands);

  PrimitiveKernel primitive_;
  Operands wide_;  // of the primitive
  std::size_t scratchpad_bytes_;
  std::vector<Conversion> before_, after_;
};

}  // namespace cnn::layers::cpu
