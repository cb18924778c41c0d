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

// Code that every oneDNN row shares: conversion of descriptors to and from oneDNN's, one kernel
// class for all primitives, and the registration of rows.
namespace cnn::layers::cpu {

// The mapping from the axes of our tensor to those of oneDNN's descriptor.
enum class View : std::uint8_t {
  same,
  grouped,     // depthwise weights [C, 1, kh, kw] as groups, O, I, kh, kw = [C, 1, 1, kh, kw]
  transposed,  // a matrix [K, M] as outputs, inputs = [M, K]
};

dnnl::memory::data_type onednn_type(DataType type);

// Returns oneDNN's engine for this processor, limited to effective_isa().
dnnl::engine cpu_engine();

// The engine and the instruction sets of a plan.
struct Target {
  dnnl::engine engine;
  Isa isa;  // selects types and layouts; oneDNN itself uses effective_isa()
};

// Returns the descriptor of a tensor in its layout. A packed tensor stores its view; `view` is for
// plain tensors. Throws Error if the packing is not oneDNN's.
dnnl::memory::desc memory_desc(const TensorDesc& desc, View view = View::same);
// Returns the descriptor that lets the primitive choose the memory order.
dnnl::memory::desc any_order(const TensorDesc& desc, View view = View::same);
// Returns the view stored in a packed tensor; View::same for others.
View view_of(const TensorDesc& desc);

// Inverse of memory_desc: returns `like` (its shape, and its layout if that matches) with the type
// and order of `memory`. Nothing if oneDNN has no name for that order.
std::optional<TensorDesc> tensor_desc(const TensorDesc& like, const dnnl::memory::desc& memory,
                                      View view = View::same);

// A primitive before its creation: everything that a row decides.
struct Plan {
  struct Argument {
    int id = 0;  // DNNL_ARG_...
    View view = View::same;
  };

  KernelSpec spec;
  dnnl::primitive_desc_base primitive;
  std::vector<Argument> in, out;  // by operand

  // Returns whether oneDNN would run its slow general loops instead of a generated kernel.
  bool is_slow() const;
};

// Completes a plan: queries the primitive for argument layouts and scratchpad size. Returns nothing
// if an operand's order has no name. Shapes come from `request`.
std::optional<Plan> make_plan(const Signature& request, const dnnl::primitive_desc_base& primitive,
                              std::vector<Plan::Argument> in, std::vector<Plan::Argument> out);

// Plans a copy of a tensor into another order or type. oneDNN zeroes the padding of its output.
Plan plan_reorder(const TensorDesc& from, const TensorDesc& to, const dnnl::engine& engine);

// Returns attributes that place the scratchpad in the arena, not in the library.
dnnl::primitive_attr user_scratchpad();

// A primitive whose memory objects are made once; a run sets addresses and executes.
class PrimitiveKernel final : public Kernel {
 public:
  PrimitiveKernel(const Plan& plan, const dnnl::engine& engine, std::string name);
  void run(Stream& stream, const Operands& operands) override;
  void execute(const Operands& operands);  // synchronous, on the calling thread

 private:
  // oneDNN's objects point to their engine without owning it, and a kernel may outlive its table.
  dnnl::engine engine_;
  std::string name_;
  std::size_t scratchpad_bytes_;
  dnnl::primitive primitive_;
  dnnl::stream stream_;
  std::vector<dnnl::memory> in_, out_;
  dnnl::memory scratchpad_;
  std::vector<dnnl_exec_arg_t> arguments_;  // of the C interface: the C++ interface copies a map
};

// Returns "conv: f32[...] nchw, ... -> ...", for messages.
std::string to_string(const Op& op, const Signature& signature);

namespace detail {
using Planner = std::function<std::optional<Plan>()>;
std::optional<KernelSpec> describe(const Op& op, const Signature& request, const Planner& planner,
                                   const dnnl::engine& engine);
std::unique_ptr<Kernel> make(const Op& op, const Signature& signature, const Planner& planner,
                             const dnnl::engine& engine);
}  // namespace detail

// Adds a row for a primitive. plan: (const O&, const Signature& request, const Target&) ->
// optional<Plan>, a pure function that keeps the layouts of a signature that it returned before. An
// operand planned in f32 but requested narrower is stored as requested and converted inside the
// kernel. A dnnl::error "unimplemented" means that the row cannot run the request.
template <class O, class MakePlan>
void add_primitive(KernelTable& table, const Isa& isa, MakePlan plan) {
  const Target target{cpu_engine(), isa};
  table.add<O>(
      [plan, target](const O& op, const Signature& request) {
        return detail::describe(
            op, request, [&] { return plan(op, request, target); }, target.engine);
      },
      [plan, target](const O& op, const Signature& signature) {
        return detail::make(
            op, signature, [&] { return plan(op, signature, target); }, target.engine);
      },
      Provider::onednn);
}

}  // namespace cnn::layers::cpu
