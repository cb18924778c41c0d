#include "layers/pool.h"

#include <array>

#include "layers/cpu/onednn/onednn.h"
#include "layers/cpu/rows.h"

namespace cnn::layers::cpu {
namespace {

using Forward = dnnl::pooling_forward::primitive_desc;
using Backward = dnnl::pooling_backward::primitive_desc;

constexpr auto maximum = dnnl::algorithm::pooling_max;
constexpr auto average = dnnl::algorithm::pooling_avg_exclude_padding;

// Both images of a pooling op share layout and type.
struct Images {
  TensorDesc x, y;
};

Forward forward_of(const Window& w, const Images& images, dnnl::algorithm algorithm, bool training,
                   const dnnl::engine& engine) {
  return {engine,
          training ? dnnl::prop_kind::forward_training : dnnl::prop_kind::forward_inference,
          algorithm,
          memory_desc(images.x),
          memory_desc(images.y),
          {w.stride_h, w.stride_w},
          {w.kernel_h, w.kernel_w},
          {0, 0},  // no dilation
          {w.pad_top, w.pad_left},
          {w.pad_bottom, w.pad_right},
          user_scratchpad()};
}

Backward backward_of(const Window& w, const Images& images, dnnl::algorithm algorithm,
                     const dnnl::engine& engine) {
  return {engine,
          algorithm,
          memory_desc(images.x),
          memory_desc(images.y),
          {w.stride_h, w.stride_w},
          {w.kernel_h, w.kernel_w},
          {0, 0},
          {w.pad_top, w.pad_left},
          {w.pad_bottom, w.pad_right},
          forward_of(w, images, algorithm, true, engine),
          user_scratchpad()};
}

// Bandwidth decides the time: uses bf16 wherever oneDNN generates kernels for it.
DataType compute_type(DataType request, const Isa& isa) {
  return request == DataType::bf16 && isa.avx512 ? DataType::bf16 : DataType::f32;
}

// Tries the requested layout, then the two layouts of generated kernels. Returns nothing if only
// oneDNN's general loops remain: ours are as fast.
template <class PlanWith>
std::optional<Plan> first_fast(const Images& request, const Isa& isa, PlanWith plan_with) {
  for (const Layout layout :
       {request.y.layout, preferred_layout(request.x.type, isa), Layout::nhwc}) {
    Images images = request;
    for (TensorDesc* desc : {&images.x, &images.y}) {
      desc->layout = layout;
      desc->type = compute_type(desc->type, isa);
    }
    std::optional<Plan> plan = plan_with(images);
    if (plan && !plan->is_slow()) {
      return plan;
    }
  }
  return std::nullopt;
}

// Our loops compute the maximum itself, since oneDNN's ignore a NaN: layers/cpu/max_pool.cpp.
// oneDNN's workspace of a maximum equals our tensor of indices: the position in the window, as u8,
// in the layout of y. Windows of more than 255 pixels need i32, and other kernels may use other
// formats: this file rejects both.
TensorDesc indices_like(const TensorDesc& y) {
  TensorDesc indices = y;
  indices.type = DataType::u8;
  return indices;
}

std::optional<Plan> with_u8_indices(std::optional<Plan> plan, const TensorDesc& described,
                                    const TensorDesc& y) {
  return plan && described == indices_like(y) ? std::move(plan) : std::nullopt;
}

std::optional<Plan> plan_max_backward(const MaxPoolBackward& op, const Signature& s,
                                      const Target& target) {
  return first_fast(
      {s.out[0], s.in[0]}, target.isa, [&](const Images& images) -> std::optional<Plan> {
        std::optional<Plan> plan =
            make_plan({.in = {images.y, indices_like(images.y)}, .out = {images.x}},
                      backward_of(op.window, images, maximum, target.engine),
                      {{DNNL_ARG_DIFF_DST}, {DNNL_ARG_WORKSPACE}}, {{DNNL_ARG_DIFF_SRC}});
        return plan ? with_u8_indices(plan, plan->spec.in[1], images.y) : std::nullopt;
      });
}

std::optional<Plan> plan_average(const AveragePool& op, const Signature& s, const Target& target) {
  return first_fast({s.in[0], s.out[0]}, target.isa, [&](const Images& images) {
    return make_plan({.in = {images.x}, .out = {images.y}},
                     forward_of(op.window, images, average, false, target.engine), {{DNNL_ARG_SRC}},
                     {{DNNL_ARG_DST}});
  });
}

std::optional<Plan> plan_average_backward(const AveragePoolBackward& op, const Signature& s,
                                          const Target& target) {
  return first_fast({s.out[0], s.in[0]}, target.isa, [&](const Images& images) {
    return make_plan({.in = {images.y}, .out = {images.x}},
                     backward_of(op.window, images, average, target.engine), {{DNNL_ARG_DIFF_DST}},
                     {{DNNL_ARG_DIFF_SRC}});
  });
}

}  // namespace

void add_pool_rows(KernelTable& table, const Isa& isa) {
  add_primitive<MaxPoolBackward>(table, isa, plan_max_backward);
  add_primitive<AveragePool>(table, isa, plan_average);
  add_primitive<AveragePoolBackward>(table, isa, plan_average_backward);
}

}  // namespace cnn::layers::cpu
