#include "layers/cpu/onednn/widened.h"

#include <algorithm>
#include <utility>

#include "layers/cpu/parallel.h"
#include "runtime/error.h"
#include "runtime/memory_plan.h"

namespace cnn::layers::cpu {
namespace {

// Separate nodes convert f16: oneDNN cannot on every processor.
bool is_narrow(DataType type) { return type == DataType::bf16; }

bool differs(const TensorDesc& planned, const TensorDesc& request) {
  return planned.type == DataType::f32 && is_narrow(request.type);
}

bool is_cut(const TensorDesc& planned, const TensorDesc& request) {
  return planned.shape != request.shape;
}

TensorDesc with_type(TensorDesc desc, DataType type) {
  desc.type = type;
  return desc;
}

// Returns the planned operand as the kernel's caller stores it: whole, and narrow if so requested.
TensorDesc stored_as(const TensorDesc& planned, const TensorDesc& request) {
  TensorDesc stored = differs(planned, request) ? with_type(planned, request.type) : planned;
  stored.shape = request.shape;
  return stored;
}

// Returns how many parts of the planned size a request has.
std::int64_t parts_of(const Plan& plan, const Signature& request) {
  std::int64_t parts = 1;
  const auto look_at = [&](const std::vector<TensorDesc>& planned,
                           const std::vector<TensorDesc>& whole) {
    for (std::size_t i = 0; i < planned.size(); ++i) {
      if (is_cut(planned[i], whole[i])) {
        parts = whole[i].shape[0] / planned[i].shape[0];
      }
    }
    for (std::size_t i = 0; i < planned.size(); ++i) {
      Shape all = planned[i].shape;
      if (is_cut(planned[i], whole[i])) {
        all[0] *= parts;
      }
      check(all == whole[i].shape, "onednn: the parts of a batch are not equal");
    }
  };
  look_at(plan.spec.in, request.in);
  look_at(plan.spec.out, request.out);
  return parts;
}

std::vector<TensorView> views_of(const std::vector<TensorDesc>& descs) {
  std::vector<TensorView> views;
  views.reserve(descs.size());
  for (const TensorDesc& desc : descs) {
    views.push_back({desc, nullptr});
  }
  return views;
}

// Returns the reorder of one part of an operand, from the primitive's output or to its input.
Plan conversion_of(const TensorDesc& planned, DataType stored, bool is_output,
                   const dnnl::engine& engine) {
  const TensorDesc narrow = with_type(planned, stored);
  Plan plan =
      is_output ? plan_reorder(planned, narrow, engine) : plan_reorder(narrow, planned, engine);
  check(plan.spec.workspace == 0, "onednn: a change of type that needs scratch memory");
  return plan;
}

// Adds the sums of a part to those of the parts before.
void add(const std::byte* part, std::size_t bytes, std::byte* sums) {
  const auto* const from = reinterpret_cast<const float*>(part);
  auto* const to = reinterpret_cast<float*>(sums);
  parallel_for(static_cast<std::int64_t>(bytes / sizeof(float)), elements_per_thread,
               [&](std::int64_t first, std::int64_t last) {
                 for (std::int64_t i = first; i < last; ++i) {
                   to[i] += from[i];
                 }
               });
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
  const std::int64_t parts = parts_of(plan, request);
  spec.workspace = aligned(spec.workspace);
  for (std::size_t i = 0; i < spec.in.size(); ++i) {
    const TensorDesc& planned = plan.spec.in[i];
    spec.in[i] = stored_as(planned, request.in[i]);
    if (differs(planned, spec.in[i])) {
      static_cast<void>(conversion_of(planned, spec.in[i].type, false, engine));
      spec.workspace += aligned(planned.bytes());
    }
  }
  for (std::size_t i = 0; i < spec.out.size(); ++i) {
    const TensorDesc& planned = plan.spec.out[i];
    spec.out[i] = stored_as(planned, request.out[i]);
    const bool narrow = differs(planned, spec.out[i]);
    const bool summed = parts > 1 && !is_cut(planned, spec.out[i]);
    check(!narrow || !summed, "onednn: sums over the parts of a batch in 16 bits");
    if (narrow) {
      static_cast<void>(conversion_of(planned, spec.out[i].type, true, engine));
    }
    spec.workspace += narrow || summed ? aligned(planned.bytes()) : 0;
  }
  return spec;
}

WidenedKernel::WidenedKernel(const Plan& plan, const Signature& signature,
                             const dnnl::engine& engine, const std::string& name)
    : primitive_(plan, engine, name),
      wide_{views_of(plan.spec.in), views_of(plan.spec.out), {}},
      scratchpad_bytes_(plan.spec.workspace),
      parts_(parts_of(plan, signature)) {
  std::size_t offset = aligned(scratchpad_bytes_);
  const auto place_of = [&](const TensorDesc& planned, const TensorDesc& stored, bool is_output) {
    const bool narrow = differs(planned, stored), cut = is_cut(planned, stored);
    Place place;
    place.part_bytes = cut ? with_type(planned, stored.type).bytes() : 0;
    if (narrow) {
      const Plan reorder = conversion_of(planned, stored.type, is_output, engine);
      place.reorder = std::make_unique<PrimitiveKernel>(reorder, engine, name);
      place.conversion = {views_of(reorder.spec.in), views_of(reorder.spec.out), {}};
    }
    if (narrow || (is_output && parts_ > 1 && !cut)) {
      place.offset = std::exchange(offset, offset + aligned(planned.bytes()));
    }
    return place;
  };
  for (std::size_t i = 0; i < plan.spec.in.size(); ++i) {
    in_.push_back(place_of(plan.spec.in[i], signature.in[i], false));
  }
  for (std::size_t i = 0; i < plan.spec.out.size(); ++i) {
    out_.push_back(place_of(plan.spec.out[i], signature.out[i], true));
  }
}

void WidenedKernel::run(Stream& stream, const Operands& operands) {
  stream.host([this, &operands] {
    for (std::int64_t part = 0; part < parts_; ++part) {
      execute(operands, part);
    }
  });
}

void WidenedKernel::execute(const Operands& operands, std::int64_t part) {
  std::byte* const workspace = operands.workspace.data();
  const auto stored = [&](const Place& place, std::byte* data) {
    return data + static_cast<std::size_t>(part) * place.part_bytes;
  };
  wide_.workspace = operands.workspace.first(scratchpad_bytes_);
  for (std::size_t i = 0; i < in_.size(); ++i) {
    Place& place = in_[i];
    std::byte* const from = stored(place, operands.in[i].data);
    wide_.in[i].data = place.offset ? workspace + *place.offset : from;
    if (place.reorder && (part == 0 || place.part_bytes > 0)) {
      convert(place, from, wide_.in[i].data);
    }
  }
  const auto uses_copy = [&](const Place& place) {
    return place.reorder != nullptr || (place.offset && part > 0);
  };
  for (std::size_t i = 0; i < out_.size(); ++i) {
    wide_.out[i].data =
        uses_copy(out_[i]) ? workspace + *out_[i].offset : stored(out_[i], operands.out[i].data);
  }
  primitive_.execute(wide_);
  for (std::size_t i = 0; i < out_.size(); ++i) {
    std::byte* const to = stored(out_[i], operands.out[i].data);
    if (out_[i].reorder) {
      convert(out_[i], wide_.out[i].data, to);
    } else if (uses_copy(out_[i])) {
      add(wide_.out[i].data, wide_.out[i].desc.bytes(), to);
    }
  }
}

void WidenedKernel::convert(Place& place, std::byte* from, std::byte* to) {
  place.conversion.in[0].data = from;
  place.conversion.out[0].data = to;
  place.reorder->execute(place.conversion);
}

}  // namespace cnn::layers::cpu
