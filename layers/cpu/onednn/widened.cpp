#include "layers/cpu/onednn/widened.h"

#include <algorithm>

#include "runtime/error.h"
#include "runtime/memory_plan.h"

namespace cnn::layers::cpu {
namespace {

// Separate nodes convert f16: oneDNN cannot on every processor.
bool is_narrow(DataType type) { return type == DataType::bf16; }

bool differs(const TensorDesc& planned, const TensorDesc& request) {
  return planned.type == DataType::f32 && is_narrow(request.type);
}

// Calls visit(operand, planned, request) for each operand of one side whose descriptions differ.
template <class Visit>
void each_difference(const std::vector<TensorDesc>& planned, const std::vector<TensorDesc>& request,
                     const Visit& visit) {
  for (std::size_t i = 0; i < planned.size(); ++i) {
    if (differs(planned[i], request[i])) {
      visit(i, planned[i], request[i]);
    }
  }
}

TensorDesc with_type(TensorDesc desc, DataType type) {
  desc.type = type;
  return desc;
}

std::vector<TensorView> views_of(const std::vector<TensorDesc>& descs) {
  std::vector<TensorView> views;
  for (const TensorDesc& desc : descs) {
    views.push_back({desc, nullptr});
  }
  return views;
}

}  // namespace

bool is_widened(const Plan& plan, const Signature& request) {
  return !std::equal(plan.spec.in.begin(), plan.spec.in.end(), request.in.begin(),
                     [](const auto& p, const auto& a) { return !differs(p, a); }) ||
         !std::equal(plan.spec.out.begin(), plan.spec.out.end(), request.out.begin(),
                     [](const auto& p, const auto& a) { return !differs(p, a); });
}

KernelSpec widened_spec(const Plan& plan, const Signature& request, const dnnl::engine& engine) {
  KernelSpec spec = plan.spec;
  if (!is_widened(plan, request)) {
    return spec;
  }
  spec.workspace = aligned(spec.workspace);
  each_difference(plan.spec.in, request.in,
                  [&](std::size_t i, const auto& wide, const auto& narrow) {
                    spec.in[i] = with_type(wide, narrow.type);
                    spec.workspace += aligned(wide.bytes());
                    check(plan_reorder(spec.in[i], wide, engine).spec.workspace == 0,
                          "onednn: a change of type that needs scratch memory");
                  });
  each_difference(plan.spec.out, request.out,
                  [&](std::size_t i, const auto& wide, const auto& narrow) {
                    spec.out[i] = with_type(wide, narrow.type);
                    spec.workspace += aligned(wide.bytes());
                    check(plan_reorder(wide, spec.out[i], engine).spec.workspace == 0,
                          "onednn: a change of type that needs scratch memory");
                  });
  return spec;
}

WidenedKernel::WidenedKernel(const Plan& plan, const Signature& signature,
                             const dnnl::engine& engine, const std::string& name)
    : primitive_(plan, engine, name),
      wide_{views_of(plan.spec.in), views_of(plan.spec.out), {}},
      scratchpad_bytes_(plan.spec.workspace) {
  std::size_t offset = aligned(scratchpad_bytes_);
  const auto add = [&](std::vector<Conversion>& to, std::size_t operand, const TensorDesc& from,
                       const TensorDesc& into, std::size_t wide_bytes) {
    to.push_back({operand,
                  offset,
                  PrimitiveKernel(plan_reorder(from, into, engine), engine, name),
                  {{{from, nullptr}}, {{into, nullptr}}, {}}});
    offset += aligned(wide_bytes);
  };
  each_difference(plan.spec.in, signature.in,
                  [&](std::size_t i, const auto& wide, const auto& narrow) {
                    add(before_, i, narrow, wide, wide.bytes());
                  });
  each_difference(plan.spec.out, signature.out,
                  [&](std::size_t i, const auto& wide, const auto& narrow) {
                    add(after_, i, wide, narrow, wide.bytes());
                  });
}

void WidenedKernel::run(Stream& stream, const Operands& operands) {
  stream.host([this, &operands] { execute(operands); });
}

void WidenedKernel::execute(const Operands& operands) {
  for (std::size_t i = 0; i < wide_.in.size(); ++i) {
    wide_.in[i].data = operands.in[i].data;
  }
  for (std::size_t i = 0; i < wide_.out.size(); ++i) {
    wide_.out[i].data = operands.out[i].data;
  }
  wide_.workspace = operands.workspace.first(scratchpad_bytes_);
  for (Conversion& conversion : before_) {
    std::byte* const copy = operands.workspace.data() + conversion.offset;
    conversion.operands.in[0].data = operands.in[conversion.operand].data;
    conversion.operands.out[0].data = copy;
    conversion.reorder.execute(conversion.operands);
    wide_.in[conversion.operand].data = copy;
  }
  for (const Conversion& conversion : after_) {
    wide_.out[conversion.operand].data = operands.workspace.data() + conversion.offset;
  }
  primitive_.execute(wide_);
  for (Conversion& conversion : after_) {
    conversion.operands.in[0].data = wide_.out[conversion.operand].data;
    conversion.operands.out[0].data = operands.out[conversion.operand].data;
    conversion.reorder.execute(conversion.operands);
  }
}

}  // namespace cnn::layers::cpu
