#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "layers/cpu/onednn/onednn.h"

// Runs f32 primitives on 16-bit operands: on processors that multiply f32 faster, this halves
// storage and traffic between kernels, and products cost no more than in f32.
namespace cnn::layers::cpu {

// Returns whether an operand of the plan is wider than requested: stored narrow, converted in the
// kernel.
bool is_widened(const Plan& plan, const Signature& request);

// Returns the spec of a WidenedKernel: the plan's layouts with the requested shapes and types, and
// workspace for wide copies. The plan may be one for fewer images than requested. Operands whose
// planned shapes differ from the request's are then cut along their first axis, and outputs that
// are not cut are sums over the parts, in f32. Throws Error if the parts are not equal.
KernelSpec widened_spec(const Plan& plan, const Signature& request, const dnnl::engine& engine);

// Reorders each narrow input into the workspace, runs the primitive, and reorders each output; all
// of this for one part of the batch after another, if the plan is for a part.
class WidenedKernel final : public Kernel {
 public:
  // signature: of the stored operands, a widened_spec of the plan.
  WidenedKernel(const Plan& plan, const Signature& signature, const dnnl::engine& engine,
                const std::string& name);
  void run(Stream& stream, const Operands& operands) override;

 private:
  // How an operand of the primitive lies in memory.
  struct Place {
    std::size_t part_bytes = 0;  // from one stored part to the next; 0: parts share the operand
    std::optional<std::size_t> offset;  // of the wide copy, or of a part's sums, in the workspace
    std::unique_ptr<PrimitiveKernel> reorder;  // narrow to wide, or back; null: stored wide
    Operands conversion;  // of the reorder: one in, one out; addresses change with every run
  };

  void execute(const Operands& operands, std::int64_t part);
  static void convert(Place& place, std::byte* from, std::byte* to);

  PrimitiveKernel primitive_;
  Operands wide_;  // of the primitive
  std::size_t scratchpad_bytes_;
  std::int64_t parts_;
  std::vector<Place> in_, out_;
};

}  // namespace cnn::layers::cpu
