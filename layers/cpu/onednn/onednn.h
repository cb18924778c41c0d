#pragma once

#include <cstdint>
#include <dnnl.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "layers/cpu/isa.h"
#include "runtime/kernel.h"

// Code that every oneDNN row shares: descriptors between our world and oneDNN's, one kernel class
// for all primitives, and the adding of rows.
namespace cnn::layers::cpu {

// How the axes of our tensor stand in oneDNN's descriptor.
enum class View : std::uint8_t {
  same,
  grouped,     // depthwise weights [C, 1, kh, kw] as groups, O, I, kh, kw = [C, 1, 1, kh, kw]
  transposed,  // a matrix [K, M] as outputs, inputs = [M, K]
};

dnnl::memory::data_type onednn_type(DataType type);

// oneDNN on this processor, limited to effective_isa().
dnnl::engine cpu_engine();

// The device and sets that a plan is made for.
struct Target {
  dnnl::engine engine;
  Isa isa;  // chooses types and layouts; oneDNN itself goes by what the process may use
};

// The descriptor of a tensor as it lies. A packed tensor knows its view by itself; `view` is for
// plain ones. Throws Error if the packing is not ours.
dnnl::memory::desc memory_desc(const TensorDesc& desc, View view = View::same);
// The same tensor in whatever order the primitive likes best.
dnnl::memory::desc any_order(const TensorDesc& desc, View view = View::same);
// The view in which a packed tensor was described; View::same for others.
View view_of(const TensorDesc& desc);

// Inverse of memory_desc: `like` (its shape, and its layout where that is true) with the type and
// order of `memory`. Nothing if oneDNN has no name for that order.
std::optional<TensorDesc> tensor_desc(const TensorDesc& like, const dnnl::memory::desc& memory,
                                      View view = View::same);

// One primitive that is ready to be made: everything a row decides.
struct Plan {
  struct Argument {
    int id = 0;  // DNNL_ARG_...
    View view = View::same;
  };

  KernelSpec spec;
  dnnl::primitive_desc_base primitive;
  std::vector<Argument> in, out;  // by operand

  // Whether this is one of oneDNN's slow general loops rather than a generated kernel.
  bool is_slow() const;
};

// Completes a plan: asks the primitive how its arguments lie and what scratchpad it needs. Nothing
// if an operand's order has no name. Shapes are those of `asked`.
std::optional<Plan> make_plan(const Signature& asked, const dnnl::primitive_desc_base& primitive,
                              std::vector<Plan::Argument> in, std::vector<Plan::Argument> out);

// A copy of a tensor into another order or type. oneDNN zeroes the padding of what it writes.
Plan plan_reorder(const TensorDesc& from, const TensorDesc& to, const dnnl::engine& engine);

// Scratch memory belongs to the arena, not to the library.
dnnl::primitive_attr user_scratchpad();

// A primitive with memory objects that are made once; a run sets addresses and executes.
class PrimitiveKernel final : public Kernel {
 public:
  PrimitiveKernel(const Plan& plan, const dnnl::engine& engine, std::string name);
  void run(Stream& stream, const Operands& operands) override;
  void execute(const Operands& operands);  // now, on the calling thread

 private:
  // oneDNN's objects point to their engine without owning it, and a kernel may outlive its table.
  dnnl::engine engine_;
  std::string name_;
  std::size_t scratchpad_bytes_;
  dnnl::primitive primitive_;
  dnnl::stream stream_;
  std::vector<dnnl::memory> in_, out_;
  dnnl::memory scratchpad_;
  std::vector<dnnl_exec_arg_t> arguments_;  // of the C interface: the C++ one copies a map
};

// "conv: f32[...] nchw, ... -> ...", for messages.
std::string to_string(const Op& op, const Signature& signature);

namespace detail {
using Planner = std::function<std::optional<Plan>()>;
std::optional<KernelSpec> describe(const Op& op, const Signature& asked, const Planner& planner,
                                   const dnnl::engine& engine);
std::unique_ptr<Kernel> make(const Op& op, const Signature& signature, const Planner& planner,
                             const dnnl::engine& engine);
}  // namespace detail

// Adds a row for a primitive. plan: (const O&, const Signature& asked, const Target&) ->
// optional<Plan>, a pure function of its arguments that keeps the layouts of a signature which it
// has answered before. An operand that it plans in f32 but that is asked narrower is stored as
// asked and converted within the kernel. A dnnl::error "unimplemented" counts as: cannot be run so.
template <class O, class MakePlan>
void add_primitive(KernelTable& table, const Isa& isa, MakePlan plan) {
  const Target target{cpu_engine(), isa};
  table.add<O>(
      [plan, target](const O& op, const Signature& asked) {
        return detail::describe(
            op, asked, [&] { return plan(op, asked, target); }, target.engine);
      },
      [plan, target](const O& op, const Signature& signature) {
        return detail::make(
            op, signature, [&] { return plan(op, signature, target); }, target.engine);
      },
      Provider::onednn);
}

}  // namespace cnn::layers::cpu
