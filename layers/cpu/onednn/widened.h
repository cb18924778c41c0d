#pragma once

#include <string>
#include <vector>

#include "layers/cpu/onednn/onednn.h"

// Runs f32 primitives on 16-bit operands: on processors that multiply f32 faster, this halves
// storage and traffic between kernels, and products cost no more than in f32.
namespace cnn::layers::cpu {

// Returns whether an operand of the plan is wider than requested: stored narrow, converted in the
// kernel.
bool is_widened(const Plan& plan, const Signature& request);

// Returns the spec of a WidenedKernel: the plan's, with the requested types, and workspace for wide
// copies.
KernelSpec widened_spec(const Plan& plan, const Signature& request, const dnnl::engine& engine);

// Reorders each narrow input into the workspace, runs the primitive, and reorders each output.
class WidenedKernel final : public Kernel {
 public:
  // signature: of the stored operands, a widened_spec of the plan.
  WidenedKernel(const Plan& plan, const Signature& signature, const dnnl::engine& engine,
                const std::string& name);
  void run(Stream& stream, const Operands& operands) override;

 private:
  struct Conversion {
    std::size_t operand;      // index in the kernel's operands
    std::size_t offset;       // of the wide copy in the workspace, bytes
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
