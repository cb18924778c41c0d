#include <algorithm>
#include <cstdint>
#include <utility>

#include "layers/cpu/onednn.h"
#include "layers/cpu/rows.h"
#include "layers/dense.h"
#include "layers/elementwise.h"

namespace cnn::layers::cpu {
namespace {

// A copy between two descriptors of one tensor. The spec answers what was asked: oneDNN reorders
// anything, and zeroes the padding of what it writes.
Plan plan_reorder(const Signature& asked, const dnnl::memory::desc& from,
                  const dnnl::memory::desc& to, const dnnl::engine& engine) {
  const dnnl::reorder::primitive_desc primitive(engine, from, engine, to, user_scratchpad());
  return {.spec = {.workspace = primitive.scratchpad_desc().get_size(),
                   .in = asked.in,
                   .out = asked.out},
          .primitive = primitive,
          .in = {Plan::Argument{DNNL_ARG_FROM}},
          .out = {Plan::Argument{DNNL_ARG_TO}}};
}

std::optional<Plan> plan_convert(const Convert& /*op*/, const Signature& asked,
                                 const dnnl::engine& engine) {
  const TensorDesc& from = asked.in[0];
  const TensorDesc& to = asked.out[0];
  const View view = from.layout == Layout::packed ? view_of(from) : view_of(to);
  return plan_reorder(asked, memory_desc(from, view), memory_desc(to, view), engine);
}

// [N, H*W*C] with channels fastest is exactly the bytes of an image in nhwc.
TensorDesc as_nhwc(const TensorDesc& image, DataType type) {
  return {.shape = image.shape, .type = type, .layout = Layout::nhwc};
}

std::optional<Plan> plan_flatten(const Flatten& /*op*/, Signature asked,
                                 const dnnl::engine& engine) {
  asked.out[0].layout = Layout::nchw;
  return plan_reorder(asked, memory_desc(asked.in[0]),
                      memory_desc(as_nhwc(asked.in[0], asked.out[0].type)), engine);
}

std::optional<Plan> plan_unflatten(const Unflatten& /*op*/, Signature asked,
                                   const dnnl::engine& engine) {
  asked.in[0].layout = Layout::nchw;
  return plan_reorder(asked, memory_desc(as_nhwc(asked.out[0], asked.in[0].type)),
                      memory_desc(asked.out[0]), engine);
}

// y = x * scale + shift over plain memory, converting on the way. A few MB per step: bytes decide.
class NormaliseKernel final : public Kernel {
 public:
  explicit NormaliseKernel(const Normalise& op) : scale_(op.scale), shift_(op.shift) {}

  void run(Stream& stream, const Operands& operands) override {
    stream.host([this, &operands] { from(operands.in[0], operands.out[0]); });
  }

 private:
  void from(const TensorView& x, const TensorView& y) const {
    if (x.desc.type == DataType::u8) {
      into<std::uint8_t>(x, y);
    } else {
      into<float>(x, y);
    }
  }

  template <class From>
  void into(const TensorView& x, const TensorView& y) const {
    if (y.desc.type == DataType::bf16) {
      loop(x.as<From>(), y.as<BFloat16>(), [](float value) { return to_bf16(value); });
    } else {
      loop(x.as<From>(), y.as<float>(), [](float value) { return value; });
    }
  }

  template <class From, class To, class Round>
  void loop(std::span<From> x, std::span<To> y, Round round) const {
    const float scale = scale_, shift = shift_;
    const auto size = static_cast<std::int64_t>(y.size());
#pragma omp parallel for simd
    for (std::int64_t i = 0; i < size; ++i) {
      const auto at = static_cast<std::size_t>(i);
      y[at] = round(static_cast<float>(x[at]) * scale + shift);
    }
  }

  float scale_, shift_;
};

// Padding must stay zero and the shift would fill it: only layouts without padding are taken.
std::optional<KernelSpec> describe_normalise(const Normalise& op, Signature asked) {
  const DataType from = asked.in[0].type;
  if ((from != DataType::u8 && from != DataType::f32) || op.type == DataType::f16) {
    return std::nullopt;
  }
  if (asked.in[0].layout != Layout::nhwc) {
    asked.in[0].layout = Layout::nchw;
  }
  asked.out[0].layout = asked.in[0].layout;
  return KernelSpec{.workspace = 0, .in = asked.in, .out = asked.out};
}

}  // namespace

void add_convert_rows(KernelTable& table) {
  add_primitive<Convert>(table, plan_convert);
  add_primitive<Flatten>(table, plan_flatten);
  add_primitive<Unflatten>(table, plan_unflatten);
  table.add<Normalise>(describe_normalise, [](const Normalise& op, const Signature& /*s*/) {
    return std::make_unique<NormaliseKernel>(op);
  });
}

}  // namespace cnn::layers::cpu
