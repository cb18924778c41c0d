#include "layers/cpu/onednn/onednn.h"

#include <array>
#include <dnnl_debug.h>
#include <string_view>
#include <utility>

#include "layers/cpu/onednn/widened.h"
#include "runtime/error.h"

namespace cnn::layers::cpu {
namespace {

using Memory = dnnl::memory;

constexpr std::string_view onednn = "onednn";
constexpr std::array<std::string_view, 3> view_names{"same", "grouped", "transposed"};

Memory::dims dims_of(const Shape& shape, View view) {
  switch (view) {
    case View::grouped:
      check(shape.rank() == 4 && shape[1] == 1, "grouped weights are [C, 1, kh, kw]");
      return {shape[0], 1, 1, shape[2], shape[3]};
    case View::transposed:
      check(shape.rank() == 2, "only a matrix can be transposed");
      return {shape[1], shape[0]};
    case View::same:
      break;
  }
  if (shape.rank() == 0) {
    return {1};
  }
  return {shape.begin(), shape.end()};
}

// Letters are axes, upper-case letters are blocked axes: see dnnl::memory::format_tag.
Memory::format_tag plain_tag(std::size_t rank) {
  using Tag = Memory::format_tag;
  constexpr std::array<Tag, 6> tags{Tag::a, Tag::a, Tag::ab, Tag::abc, Tag::abcd, Tag::abcde};
  return tags.at(rank);
}

Memory::format_tag image_tag(const TensorDesc& desc) {
  using Tag = Memory::format_tag;
  const std::size_t rank = desc.shape.rank();
  if (desc.layout == Layout::nchw || rank < 3) {
    return plain_tag(rank);
  }
  constexpr std::array<Tag, 3> nhwc{Tag::acb, Tag::acdb, Tag::acdeb};
  constexpr std::array<Tag, 3> nchw16c{Tag::aBc16b, Tag::aBcd16b, Tag::aBcde16b};
  return desc.layout == Layout::nhwc ? nhwc.at(rank - 3) : nchw16c.at(rank - 3);
}

// The packing's tag is "<view> <oneDNN's name of the order>", as in "grouped Abcde16a": together
// with shape and type this describes the memory order completely.
struct Order {
  View view;
  Memory::format_tag tag;
};

Memory::format_tag tag_named(std::string_view name) {
  for (int tag = dnnl_a; tag < dnnl_format_tag_last; ++tag) {
    if (name == dnnl_fmt_tag2str(static_cast<dnnl_format_tag_t>(tag))) {
      return static_cast<Memory::format_tag>(tag);
    }
  }
  throw Error("onednn: no memory order is named '" + std::string(name) + "'");
}

Order parse(const TensorDesc& desc) {
  check(desc.packing != nullptr && desc.packing->backend == onednn,
        "onednn: a tensor packed for another backend");
  const std::string_view text = desc.packing->tag;
  const std::size_t space = text.find(' ');
  for (std::size_t i = 0; i < view_names.size(); ++i) {
    if (space != std::string_view::npos && text.substr(0, space) == view_names[i]) {
      return {static_cast<View>(i), tag_named(text.substr(space + 1))};
    }
  }
  throw Error("onednn: cannot read the packing '" + desc.packing->tag + "'");
}

// oneDNN does not report the tag of a descriptor that it chose, so this searches the tag with an
// equal descriptor.
std::optional<std::string> name_of_order(const Memory::desc& memory) {
  const Memory::dims dims = memory.get_dims();
  const auto type = static_cast<dnnl_data_type_t>(memory.get_data_type());
  for (int tag = dnnl_a; tag < dnnl_format_tag_last; ++tag) {
    dnnl_memory_desc_t candidate = nullptr;
    if (dnnl_memory_desc_create_with_tag(&candidate, static_cast<int>(dims.size()), dims.data(),
                                         type,
                                         static_cast<dnnl_format_tag_t>(tag)) != dnnl_success) {
      continue;  // the tag has another rank
    }
    const Memory::desc owner(candidate);
    if (owner == memory) {
      return dnnl_fmt_tag2str(static_cast<dnnl_format_tag_t>(tag));
    }
  }
  return std::nullopt;
}

DataType type_of(Memory::data_type type) {
  switch (type) {
    case Memory::data_type::f32:
      return DataType::f32;
    case Memory::data_type::f16:
      return DataType::f16;
    case Memory::data_type::bf16:
      return DataType::bf16;
    case Memory::data_type::s32:
      return DataType::i32;
    case Memory::data_type::u8:
      return DataType::u8;
    default:
      throw Error("onednn: a data type that we do not have");
  }
}

}  // namespace

dnnl::engine cpu_engine() {
  effective_isa();  // limits oneDNN before its first use
  return {dnnl::engine::kind::cpu, 0};
}

Memory::data_type onednn_type(DataType type) {
  constexpr std::array<Memory::data_type, 5> types{Memory::data_type::f32, Memory::data_type::f16,
                                                   Memory::data_type::bf16, Memory::data_type::s32,
                                                   Memory::data_type::u8};
  return types.at(static_cast<std::size_t>(type));
}

View view_of(const TensorDesc& desc) {
  return desc.layout == Layout::packed ? parse(desc).view : View::same;
}

Memory::desc memory_desc(const TensorDesc& desc, View view) {
  const Memory::data_type type = onednn_type(desc.type);
  if (desc.layout == Layout::packed) {
    const Order order = parse(desc);
    return {dims_of(desc.shape, order.view), type, order.tag};
  }
  switch (view) {
    case View::grouped:
      return {dims_of(desc.shape, view), type, Memory::format_tag::abcde};
    case View::transposed:
      return {dims_of(desc.shape, view), type, Memory::format_tag::ba};
    case View::same:
      break;
  }
  return {dims_of(desc.shape, view), type, image_tag(desc)};
}

Memory::desc any_order(const TensorDesc& desc, View view) {
  return {dims_of(desc.shape, view), onednn_type(desc.type), Memory::format_tag::any};
}

std::optional<TensorDesc> tensor_desc(const TensorDesc& like, const Memory::desc& memory,
                                      View view) {
  TensorDesc desc{like.shape, type_of(memory.get_data_type()), Layout::nchw, nullptr};
  // An image of one pixel or one channel is equal in several layouts: keeps the requested one.
  for (const Layout layout : {like.layout, Layout::nchw, Layout::nhwc, Layout::nchw16c}) {
    const bool image = desc.shape.rank() == 4 && view == View::same;
    desc.layout = layout;
    if (layout != Layout::packed && (image || layout == Layout::nchw) &&
        memory_desc(desc, view) == memory) {
      return desc;
    }
  }
  const std::optional<std::string> name = name_of_order(memory);
  if (!name) {
    return std::nullopt;
  }
  desc.layout = Layout::packed;
  desc.packing = std::make_shared<const Packing>(
      Packing{onednn, std::string(view_names.at(static_cast<std::size_t>(view))) + " " + *name,
              memory.get_size()});
  return desc;
}

bool Plan::is_slow() const {
  // "ref:any" loops over elements; "x64:gemm:jit" unrolls images into matrices first.
  const std::string_view name = primitive.impl_info_str();
  return name.find("gemm") != std::string_view::npos || name.find("ref") == 0 ||
         name.find("simple") == 0;
}

std::optional<Plan> make_plan(const Signature& request, const dnnl::primitive_desc_base& primitive,
                              std::vector<Plan::Argument> in, std::vector<Plan::Argument> out) {
  Plan plan{.spec = {}, .primitive = primitive, .in = std::move(in), .out = std::move(out)};
  const auto settle = [&](const std::vector<TensorDesc>& wanted,
                          const std::vector<Plan::Argument>& arguments,
                          std::vector<TensorDesc>& into) {
    for (std::size_t i = 0; i < arguments.size(); ++i) {
      const Memory::desc memory = primitive.query_md(dnnl::query::exec_arg_md, arguments[i].id);
      const std::optional<TensorDesc> desc = tensor_desc(wanted.at(i), memory, arguments[i].view);
      if (!desc) {
        return false;
      }
      into.push_back(*desc);
    }
    return true;
  };
  if (!settle(request.in, plan.in, plan.spec.in) || !settle(request.out, plan.out, plan.spec.out)) {
    return std::nullopt;
  }
  plan.spec.workspace = primitive.scratchpad_desc().get_size();
  return plan;
}

Plan plan_reorder(const TensorDesc& from, const TensorDesc& to, const dnnl::engine& engine) {
  const View view = from.layout == Layout::packed ? view_of(from) : view_of(to);
  const dnnl::reorder::primitive_desc primitive(engine, memory_desc(from, view), engine,
                                                memory_desc(to, view), user_scratchpad());
  Plan plan;
  plan.spec.workspace = primitive.scratchpad_desc().get_size();
  plan.spec.in.push_back(from);
  plan.spec.out.push_back(to);
  plan.spec.in.back().pitch = plan.spec.out.back().pitch = 0;
  plan.primitive = primitive;
  plan.in.push_back({DNNL_ARG_FROM});
  plan.out.push_back({DNNL_ARG_TO});
  return plan;
}

dnnl::primitive_attr user_scratchpad() {
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  return attributes;
}

PrimitiveKernel::PrimitiveKernel(const Plan& plan, const dnnl::engine& engine, std::string name)
    : engine_(engine),
      name_(std::move(name)),
      scratchpad_bytes_(plan.spec.workspace),
      primitive_(plan.primitive.get()),
      stream_(engine),
      scratchpad_(plan.primitive.scratchpad_desc(), engine, nullptr) {
  const auto bind = [&](const std::vector<Plan::Argument>& ids, std::vector<dnnl::memory>& to) {
    for (const Plan::Argument& argument : ids) {
      to.emplace_back(plan.primitive.query_md(dnnl::query::exec_arg_md, argument.id), engine,
                      nullptr);
      arguments_.push_back({argument.id, to.back().get()});
    }
  };
  bind(plan.in, in_);
  bind(plan.out, out_);
  arguments_.push_back({DNNL_ARG_SCRATCHPAD, scratchpad_.get()});
}

void PrimitiveKernel::run(Stream& stream, const Operands& operands) {
  stream.host([this, &operands] { execute(operands); });
}

void PrimitiveKernel::execute(const Operands& operands) {
  check(operands.workspace.size() >= scratchpad_bytes_, "onednn: the workspace is too small");
  for (std::size_t i = 0; i < in_.size(); ++i) {
    in_[i].set_data_handle(operands.in[i].data);
  }
  for (std::size_t i = 0; i < out_.size(); ++i) {
    out_[i].set_data_handle(operands.out[i].data);
  }
  scratchpad_.set_data_handle(operands.workspace.data());
  const dnnl_status_t status = dnnl_primitive_execute(
      primitive_.get(), stream_.get(), static_cast<int>(arguments_.size()), arguments_.data());
  if (status != dnnl_success) {
    throw Error(name_ + ": oneDNN could not run it: " + dnnl_status2str(status));
  }
}

std::string to_string(const Op& op, const Signature& signature) {
  return std::string(op.name()) + ": " + cnn::to_string(signature);
}

namespace detail {

std::optional<KernelSpec> describe(const Op& op, const Signature& request, const Planner& planner,
                                   const dnnl::engine& engine) {
  try {
    const std::optional<Plan> plan = planner();
    return plan ? std::optional(widened_spec(*plan, request, engine)) : std::nullopt;
  } catch (const dnnl::error& error) {
    if (error.status == dnnl_unimplemented) {
      return std::nullopt;
    }
    throw Error(to_string(op, request) + ": oneDNN refuses it: " + error.what());
  }
}

std::unique_ptr<Kernel> make(const Op& op, const Signature& signature, const Planner& planner,
                             const dnnl::engine& engine) {
  try {
    const std::optional<Plan> plan = planner();
    const KernelSpec spec = plan ? widened_spec(*plan, signature, engine) : KernelSpec{};
    if (spec.in != signature.in || spec.out != signature.out) {
      throw Error(to_string(op, signature) +
                  ": oneDNN has no kernel for exactly this; ask describe() first");
    }
    const std::string name = to_string(op, signature);
    if (is_widened(*plan, signature)) {
      return std::make_unique<WidenedKernel>(*plan, signature, engine, name);
    }
    return std::make_unique<PrimitiveKernel>(*plan, engine, name);
  } catch (const dnnl::error& error) {
    throw Error(to_string(op, signature) + ": oneDNN refuses it: " + error.what());
  }
}

}  // namespace detail

}  // namespace cnn::layers::cpu
