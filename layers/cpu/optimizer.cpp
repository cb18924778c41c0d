#include "layers/optimizer.h"

#include <algorithm>
#include <array>
#include <limits>
#include <optional>

#include "layers/cpu/own_kernel.h"
#include "layers/cpu/parallel.h"
#include "layers/cpu/rows.h"
#include "layers/host_variable.h"

namespace cnn::layers::cpu {

namespace {

// A piece of a tensor. All pieces form one index space, divided evenly among threads for any sizes
// of tensors.
struct Part {
  std::size_t tensor = 0;
  std::int64_t first = 0, n = 0;
  std::int64_t before = 0;  // elements of all parts before this one
};

constexpr std::int64_t part_elements = 16384;  // sums within a part, then over parts in order

std::vector<Part> parts_of(std::span<const TensorDesc> tensors) {
  std::vector<Part> parts;
  std::int64_t before = 0;
  for (std::size_t tensor = 0; tensor < tensors.size(); ++tensor) {
    const std::int64_t elements = stored_elements(tensors[tensor]);
    for (std::int64_t first = 0; first < elements; first += part_elements) {
      const std::int64_t n = std::min(part_elements, elements - first);
      parts.push_back({tensor, first, n, before});
      before += n;
    }
  }
  return parts;
}

// Calls visit(index of the part) for all parts, on all threads.
template <class Visit>
void each_part(std::span<const Part> parts, const Visit& visit) {
  if (parts.empty()) {
    return;
  }
  const std::int64_t elements = parts.back().before + parts.back().n;
  parallel_for(elements, elements_per_thread, [&](std::int64_t begin, std::int64_t end) {
    auto part = std::ranges::lower_bound(parts, begin, {}, &Part::before);
    for (; part != parts.end() && part->before < end; ++part) {
      visit(static_cast<std::size_t>(part - parts.begin()));
    }
  });
}

template <class T>
void narrow(const float* from, T* to, std::int64_t n, T (*round)(float)) {
  for (std::int64_t i = 0; i < n; ++i) {
    to[i] = round(from[i]);
  }
}

// Writes the same piece of a parameter's copy while the piece is in the cache.
void write_copy(const UpdatePiece& piece, const TensorView& copy, std::int64_t first) {
  if (copy.desc.type == DataType::bf16) {
    narrow(piece.w, copy.as<BFloat16>().data() + first, piece.n, to_bf16);
  } else {
    narrow(piece.w, copy.as<Float16>().data() + first, piece.n, to_f16);
  }
}

using UpdateLoop = double (*)(const UpdatePiece&, const UpdateFactors&);

struct RuleLoop {
  Rule rule;
  UpdateLoop Loops::*loop;
};
constexpr std::array rule_loops{
    RuleLoop{Rule::sgd, &Loops::sgd}, RuleLoop{Rule::momentum, &Loops::momentum},
    RuleLoop{Rule::rmsprop, &Loops::rmsprop}, RuleLoop{Rule::adam, &Loops::adam}};

// Returns null if there is no such loop: the rule's scalar function then serves.
UpdateLoop loop_of(Rule rule, const Loops& loops) {
  const auto* const found = std::ranges::find(rule_loops, rule, &RuleLoop::rule);
  return found == rule_loops.end() ? nullptr : loops.*found->loop;
}

class UpdateBucket {
 public:
  // first: the element of the gradients that belongs to the first of the parameters.
  UpdateBucket(const Update& op, const Signature& s, const Loops& loops, std::int64_t first = 0)
      : op_(op),
        parts_(parts_of(std::span(s.in).subspan(op.first_parameter(), op.parameters))),
        loops_(&loops),
        first_(first) {}

  std::size_t workspace() const { return parts_.size() * sizeof(double); }

  void operator()(const Operands& o) const { add_up(update_parts(o), o.out[0].as<float>()); }

  // Updates all parts and returns their sums of squares, in the workspace.
  std::span<const double> update_parts(const Operands& o) const {
    const UpdateAttributes& a = op_.attributes;
    const Update::Scalars scalars = op_.scalars(o.in);
    const bool skip = scalars.skip;
    const UpdateFactors common = factors(scalars);
    const UpdateLoop update = loop_of(a.rule, *loops_);
    auto* const squares = reinterpret_cast<double*>(o.workspace.data());
    each_part(parts_, [&](std::size_t i) {
      const Part& part = parts_[i];
      const UpdatePiece piece = piece_of(o, part);
      UpdateFactors by = common;
      by.decay = a.decay[part.tensor] ? static_cast<float>(a.weight_decay) : 0;
      const double sum = skip ? loops_->sum_of_squares(piece.w, piece.n) : update(piece, by);
      squares[i] = by.decay != 0 ? sum : 0;
      if (const std::optional<std::size_t> copy = op_.copy_of(part.tensor); copy && !skip) {
        write_copy(piece, o.in[*copy], part.first);
      }
    });
    return {squares, parts_.size()};
  }

 private:
  // Sums the parts of each tensor in order.
  void add_up(std::span<const double> squares, std::span<float> halves) const {
    std::size_t part = 0;
    for (std::size_t tensor = 0; tensor < halves.size(); ++tensor) {
      double sum = 0;
      for (; part < parts_.size() && parts_[part].tensor == tensor; ++part) {
        sum += squares[part];
      }
      halves[tensor] = static_cast<float>(sum / 2);
    }
  }

  UpdatePiece piece_of(const Operands& o, const Part& part) const {
    const auto data = [&](std::size_t first) {
      return o.in[first + part.tensor].as<float>().data() + part.first;
    };
    const auto slot = [&](std::size_t s) {
      return s < op_.slots() ? data(op_.first_slot() + s * op_.parameters) : nullptr;
    };
    return {.w = data(op_.first_parameter()),
            .g = data(op_.first_gradient()) + first_,
            .slot0 = slot(0),
            .slot1 = slot(1),
            .n = part.n};
  }

  UpdateFactors factors(const Update::Scalars& scalars) const {
    const UpdateAttributes& a = op_.attributes;
    const RuleFactors factors = row_of(a.rule).factors(a);
    return {.rate = static_cast<float>(scalars.rate),
            .unscale = static_cast<float>(scalars.unscale),
            .clip = a.clip ? static_cast<float>(*a.clip) : std::numeric_limits<float>::infinity(),
            .momentum = static_cast<float>(factors.momentum),
            .keep0 = static_cast<float>(factors.keep0),
            .keep1 = static_cast<float>(factors.keep1),
            .take0 = static_cast<float>(1 - factors.keep0),
            .take1 = static_cast<float>(1 - factors.keep1),
            .epsilon = static_cast<float>(factors.epsilon)};
  }

  Update op_;
  std::vector<Part> parts_;
  const Loops* loops_;
  std::int64_t first_;
};

// An UpdateSlice has the operands of an Update of one parameter, but a gradient of more elements.
class SliceUpdate {
 public:
  SliceUpdate(const UpdateSlice& op, const Signature& s, const Loops& loops)
      : bucket_(Update(op.attributes, 1), s, loops, op.first) {}

  std::size_t workspace() const { return bucket_.workspace(); }

  void operator()(const Operands& o) const {
    static_assert(part_elements % elements_per_sum == 0, "a part has whole sums");
    static_assert(elements_per_part % part_elements == 0, "slices have whole parts");
    auto* const sums = reinterpret_cast<double*>(o.out[0].data);
    std::fill_n(sums, o.out[0].desc.bytes() / sizeof(double), 0.0);
    std::size_t at = 0;
    for (const double sum : bucket_.update_parts(o)) {
      sums[at] = sum;
      at += part_elements / elements_per_sum;
    }
  }

 private:
  UpdateBucket bucket_;
};

void half_sum(const Operands& o) {
  double sum = 0;
  for (const TensorView& view : o.in) {
    const std::span sums(reinterpret_cast<const double*>(view.data),
                         view.desc.bytes() / sizeof(double));
    for (const double one : sums) {
      sum += one;
    }
  }
  o.out[0].as<float>()[0] = static_cast<float>(sum / 2);
}

class FindInf {
 public:
  FindInf(const Signature& s, const Loops& loops) : parts_(parts_of(s.in)), loops_(&loops) {}

  std::size_t workspace() const { return parts_.size(); }

  void operator()(const Operands& o) const {
    const std::span<std::byte> found = o.workspace.first(parts_.size());
    each_part(parts_, [&](std::size_t i) {
      const Part& part = parts_[i];
      const float* const x = o.in[part.tensor].as<float>().data() + part.first;
      found[i] = loops_->all_finite(x, part.n) ? std::byte{0} : std::byte{1};
    });
    o.out[0].as<std::int32_t>()[0] = std::ranges::find(found, std::byte{1}) == found.end() ? 0 : 1;
  }

 private:
  std::vector<Part> parts_;
  const Loops* loops_;
};

std::optional<KernelSpec> describe_update(const Update& op, const Signature& request,
                                          const Loops& loops) {
  if (loop_of(op.attributes.rule, loops) == nullptr) {
    return std::nullopt;
  }
  KernelSpec spec = as_requested(request);
  for (std::size_t i = op.first_gradient(); i < op.first_copy(); ++i) {
    const std::size_t parameter = (i - op.first_gradient()) % op.parameters;
    spec.in[i] = spec.in[op.first_parameter() + parameter];
  }
  for (const TensorDesc& desc :
       std::span(spec.in).subspan(op.first_parameter(), op.first_copy() - op.first_parameter())) {
    if (desc.type != DataType::f32) {
      return std::nullopt;
    }
  }
  for (const std::size_t parameter : op.attributes.copied) {
    TensorDesc& copy = spec.in[op.copy_of(parameter).value()];
    const DataType type = copy.type;
    copy = spec.in[op.first_parameter() + parameter];
    copy.type = type;
    if (copy.layout == Layout::packed) {  // its bytes are counted in f32
      return std::nullopt;
    }
  }
  spec.workspace = UpdateBucket(op, {.in = spec.in, .out = spec.out}, loops).workspace();
  return spec;
}

}  // namespace

// AdvanceLossScale and AdvanceAdam have no rows: their reference loops touch three scalars.
void add_optimizer_rows(KernelTable& table, const Loops& loops) {
  table.add<Update>(
      [&loops](const Update& op, const Signature& request) {
        return describe_update(op, request, loops);
      },
      [&loops](const Update& op, const Signature& s) {
        return own_kernel(UpdateBucket(op, s, loops));
      });
  table.add<UpdateSlice>(
      [&loops](const UpdateSlice& op, const Signature& request) -> std::optional<KernelSpec> {
        if (loop_of(op.attributes.rule, loops) == nullptr) {
          return std::nullopt;
        }
        return as_requested(request, SliceUpdate(op, request, loops).workspace());
      },
      [&loops](const UpdateSlice& op, const Signature& s) {
        return own_kernel(SliceUpdate(op, s, loops));
      });
  table.add<HalfSumOfSlices>(
      [](const HalfSumOfSlices&, const Signature& request) {
        return std::optional(as_requested(request));
      },
      [](const HalfSumOfSlices&, const Signature&) { return own_kernel(half_sum); });
  table.add<FoundInf>(
      [&loops](const FoundInf&, const Signature& request) -> std::optional<KernelSpec> {
        for (const TensorDesc& desc : request.in) {
          if (desc.type != DataType::f32) {
            return std::nullopt;
          }
        }
        return as_requested(request, FindInf(request, loops).workspace());
      },
      [&loops](const FoundInf&, const Signature& s) { return own_kernel(FindInf(s, loops)); });
}

}  // namespace cnn::layers::cpu
