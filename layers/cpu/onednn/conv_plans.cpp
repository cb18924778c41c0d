#include "layers/cpu/onednn/conv_plans.h"

#include <array>
#include <string_view>
#include <utility>
#include <vector>

#include "layers/cpu/onednn/relu.h"

namespace cnn::layers::cpu {
namespace {

using Forward = dnnl::convolution_forward::primitive_desc;
using BackwardData = dnnl::convolution_backward_data::primitive_desc;
using BackwardWeights = dnnl::convolution_backward_weights::primitive_desc;

constexpr auto direct = dnnl::algorithm::convolution_direct;

// One convolution in oneDNN's terms, for every direction.
struct Problem {
  dnnl::memory::desc x, w, y, bias;  // bias: empty without one
  dnnl::memory::dims strides, pad_before, pad_after;
};

Problem make_problem(const ConvAttributes& a, const TensorDesc& x, const TensorDesc& w,
                     const TensorDesc& y) {
  const Window& window = a.window;
  Problem problem;
  problem.x = memory_desc(x);
  problem.w = any_order(w, a.depthwise ? View::grouped : View::same);
  problem.y = memory_desc(y);
  if (a.bias) {
    problem.bias = memory_desc({.shape = {w.shape[0]}});
  }
  problem.strides = {window.stride_h, window.stride_w};
  problem.pad_before = {window.pad_top, window.pad_left};
  problem.pad_after = {window.pad_bottom, window.pad_right};
  return problem;
}

Forward forward_of(const Problem& p, const dnnl::engine& engine, dnnl::prop_kind kind,
                   const dnnl::primitive_attr& attributes) {
  return {engine, kind,      direct,       p.x,         p.w,       p.bias,
          p.y,    p.strides, p.pad_before, p.pad_after, attributes};
}

// Describes the forward pass as the hint that oneDNN needs for a backward pass.
Forward hint_of(Problem p, const dnnl::engine& engine, DataType weights) {
  p.w = dnnl::memory::desc(p.w.get_dims(), onednn_type(weights), dnnl::memory::format_tag::any);
  p.bias = {};
  return forward_of(p, engine, dnnl::prop_kind::forward_training, user_scratchpad());
}

// Returns bf16 where it is faster; otherwise f32, with bf16 operands converted in the kernel.
DataType compute_type(DataType request, const Isa& isa) {
  return request == DataType::bf16 && multiplies_bf16_fast(isa) ? DataType::bf16 : DataType::f32;
}

// Operands of one direction: the image that the convolution reads, and the one it writes.
struct Images {
  TensorDesc x, y;
};

// Returns the layouts to try, best first. The requested layout comes first, so that a spec used as
// request yields itself. A first convolution reads few channels faster from a plain image than from
// padded blocks.
std::vector<Images> candidates(const Images& request, const Isa& isa) {
  const Layout x = request.x.layout, y = request.y.layout;
  std::vector<std::array<Layout, 2>> pairs{{x, y}, {y, y}, {x, x}};
  if (request.x.shape[1] < 4) {
    pairs.push_back({Layout::nchw, Layout::nchw16c});
  }
  for (const Layout layout : {Layout::nchw16c, Layout::nhwc, Layout::nchw}) {
    pairs.push_back({layout, layout});
  }
  std::vector<Images> result;
  for (const auto& [from, to] : pairs) {
    result.push_back(request);
    for (auto* desc : {&result.back().x, &result.back().y}) {
      desc->type = compute_type(desc->type, isa);
    }
    result.back().x.layout = from;
    result.back().y.layout = to;
  }
  return result;
}

// Returns the plan for the first layouts with a generated kernel, else the first plan.
template <class PlanWith>
std::optional<Plan> first_fast(const Images& request, const Isa& isa, PlanWith plan_with) {
  std::optional<Plan> slow;
  for (const Images& images : candidates(request, isa)) {
    try {
      std::optional<Plan> plan = plan_with(images);
      if (plan && !plan->is_slow()) {
        return plan;
      }
      if (!slow) {
        slow = std::move(plan);
      }
    } catch (const dnnl::error& error) {
      if (error.status != dnnl_unimplemented) {
        throw;
      }
    }
  }
  return slow;
}

View weights_view(const ConvAttributes& a) { return a.depthwise ? View::grouped : View::same; }

TensorDesc weights_like(const Shape& shape, DataType type) {
  return {.shape = shape, .type = type};
}

dnnl::primitive_attr epilogue(const ConvAttributes& a, const dnnl::memory::desc& y) {
  dnnl::primitive_attr attributes = user_scratchpad();
  dnnl::post_ops after;
  if (a.residual) {
    after.append_binary(dnnl::algorithm::binary_add, y);
  }
  if (a.relu) {
    append_relu(after);
  }
  attributes.set_post_ops(after);
  return attributes;
}

// Returns the gradient in the memory order of the forward pass's weights, if the same kind of
// kernel can write it: then the update needs no conversion.
BackwardWeights like_forward(const Problem& p, const dnnl::engine& engine, const Forward& forward) {
  const auto with = [&](const dnnl::memory::desc& w) {
    return BackwardWeights(engine, direct, p.x, w, p.bias, p.y, p.strides, p.pad_before,
                           p.pad_after, forward, user_scratchpad());
  };
  BackwardWeights best = with(p.w);
  const dnnl::memory::desc wanted = forward.weights_desc();
  if (wanted.get_data_type() != p.w.get_data_type() || wanted == best.diff_weights_desc()) {
    return best;
  }
  try {
    BackwardWeights same = with(wanted);
    return std::string_view(same.impl_info_str()) == best.impl_info_str() ? same : best;
  } catch (const dnnl::error&) {
    return best;  // this kernel cannot write that order
  }
}

}  // namespace

std::optional<Plan> plan_conv(const Conv2d& op, const Signature& s, const Target& target) {
  const ConvAttributes& a = op.attributes;
  return first_fast({s.in[0], s.out[0]}, target.isa, [&](const Images& images) {
    const TensorDesc w = weights_like(s.in[1].shape, images.x.type);
    const Problem problem = make_problem(a, images.x, w, images.y);
    Signature request{.in = {images.x, w}, .out = {images.y}};
    std::vector<Plan::Argument> in{{DNNL_ARG_SRC}, {DNNL_ARG_WEIGHTS, weights_view(a)}};
    if (a.bias) {
      in.push_back({DNNL_ARG_BIAS});
      request.in.push_back({.shape = s.in[2].shape});
    }
    if (a.residual) {
      in.push_back({DNNL_ARG_ATTR_MULTIPLE_POST_OP(0) | DNNL_ARG_SRC_1});
      request.in.push_back(images.y);
    }
    // forward_training provides what a backward pass may need, at no cost for convolutions.
    return make_plan(request,
                     forward_of(problem, target.engine, dnnl::prop_kind::forward_training,
                                epilogue(a, problem.y)),
                     std::move(in), {{DNNL_ARG_DST}});
  });
}

std::optional<Plan> plan_conv(const Conv2dBackwardData& op, const Signature& s,
                              const Target& target) {
  const ConvAttributes& a = op.attributes;
  return first_fast({s.out[0], s.in[0]}, target.isa, [&](const Images& images) {
    const TensorDesc w = weights_like(s.in[1].shape, images.y.type);
    const Problem p = make_problem(a, images.x, w, images.y);
    const BackwardData primitive(target.engine, direct, p.x, p.w, p.y, p.strides, p.pad_before,
                                 p.pad_after, hint_of(p, target.engine, w.type), user_scratchpad());
    return make_plan({.in = {images.y, w}, .out = {images.x}}, primitive,
                     {{DNNL_ARG_DIFF_DST}, {DNNL_ARG_WEIGHTS, weights_view(a)}},
                     {{DNNL_ARG_DIFF_SRC}});
  });
}

std::optional<Plan> plan_conv(const Conv2dBackwardWeights& op, const Signature& s,
                              const Target& target) {
  const ConvAttributes& a = op.attributes;
  return first_fast({s.in[0], s.in[1]}, target.isa, [&](const Images& images) {
    const TensorDesc w = weights_like(op.w_shape, DataType::f32);
    const Problem problem = make_problem(a, images.x, w, images.y);
    const Forward forward = hint_of(problem, target.engine, images.x.type);
    Signature request{.in = {images.x, images.y}, .out = {w}};
    std::vector<Plan::Argument> out{{DNNL_ARG_DIFF_WEIGHTS, weights_view(a)}};
    if (a.bias) {
      out.push_back({DNNL_ARG_DIFF_BIAS});
      request.out.push_back({.shape = {op.w_shape[0]}});
    }
    return make_plan(request, like_forward(problem, target.engine, forward),
                     {{DNNL_ARG_SRC}, {DNNL_ARG_DIFF_DST}}, std::move(out));
  });
}

}  // namespace cnn::layers::cpu
