#include "layers/conv.h"

#include <array>
#include <type_traits>
#include <utility>
#include <vector>

#include "layers/cpu/bf16_gradient.h"
#include "layers/cpu/few_channels_gradient.h"
#include "layers/cpu/onednn/onednn.h"
#include "layers/cpu/onednn/products.h"
#include "layers/cpu/onednn/relu.h"
#include "layers/cpu/pointwise_gradient.h"
#include "layers/cpu/rows.h"
#include "layers/cpu/tile_conv.h"
#include "layers/cpu/tile_gradient.h"
#include "layers/cpu/tile_lines.h"

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

std::optional<Plan> plan_forward(const Conv2d& op, const Signature& s, const Target& target) {
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

std::optional<Plan> plan_backward_data(const Conv2dBackwardData& op, const Signature& s,
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

std::optional<Plan> plan_backward_weights(const Conv2dBackwardWeights& op, const Signature& s,
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

// The pixels of an image from which on our kernel is faster than oneDNN's. Measured on ResNet-50's
// layers on a Zen 4: 5 to 10 % faster on images of 28 x 28 pixels and more, slower on smaller ones.
constexpr std::int64_t min_pixels_of_pointwise = 400;

// Returns the problem if our kernel can run it and images have so many pixels, else nothing.
std::optional<PointwiseProblem> pointwise_problem(const Conv2dBackwardWeights& op,
                                                  const Signature& s, std::int64_t min_pixels) {
  const Window& w = op.attributes.window;
  const Shape &x = s.in[0].shape, &y = s.in[1].shape;
  const bool one = w.kernel_h == 1 && w.kernel_w == 1 && w.stride_h == 1 && w.stride_w == 1 &&
                   x[2] == y[2] && x[3] == y[3] && w.pad_top == 0 && w.pad_left == 0;
  const bool blocks = x[1] % pointwise_block == 0 && y[1] % pointwise_block == 0;
  if (!one || !blocks || op.attributes.depthwise || y[2] * y[3] < min_pixels) {
    return std::nullopt;
  }
  for (const TensorDesc& image : s.in) {
    if (image.type != DataType::f32 || image.layout != Layout::nchw16c) {
      return std::nullopt;
    }
  }
  return PointwiseProblem{.x = s.in[0], .y = s.in[1], .bias = op.attributes.bias};
}

using Order = dnnl::memory::format_tag;

// Describes a kernel of ours where oneDNN's takes the images as asked and would leave the gradient
// in the order in which ours does, so that the parameter's packing is the same with either.
template <class Work>
std::optional<KernelSpec> describe_own(const Conv2dBackwardWeights& op, const Signature& request,
                                       const Target& target, Order order, const Work& kernel) {
  std::optional<KernelSpec> spec = detail::describe(
      op, request, [&] { return plan_backward_weights(op, request, target); }, target.engine);
  const Shape& w = op.w_shape;
  const dnnl::memory::desc ours({w[0], w[1], w[2], w[3]}, dnnl::memory::data_type::f32, order);
  if (!spec || spec->in != request.in || memory_desc(spec->out[0]) != ours) {
    return std::nullopt;
  }
  spec->workspace = kernel.workspace();
  spec->extra_traffic = kernel.traffic_between();
  return spec;
}

// Adds Work, which writes gradients in `order`, where problem_of(op, signature) is not empty.
template <class Work, class ProblemOf>
void add_own_gradient_row(KernelTable& table, const Isa& isa, ProblemOf problem_of,
                          Order order = Order::ABcd16b16a) {
  const Target target{cpu_engine(), isa};
  table.add<Conv2dBackwardWeights>(
      [target, problem_of, order](const Conv2dBackwardWeights& op,
                                  const Signature& request) -> std::optional<KernelSpec> {
        const auto problem = problem_of(op, request);
        return problem
                   ? describe_own(op, request, target, order, Work(*problem, loops_for(target.isa)))
                   : std::nullopt;
      },
      [isa, problem_of](const Conv2dBackwardWeights& op, const Signature& s) {
        return own_kernel(Work(problem_of(op, s).value(), loops_for(isa)));
      });
}

void add_pointwise_row(KernelTable& table, const Isa& isa, std::int64_t min_pixels) {
  add_own_gradient_row<PointwiseWeightsGradient>(
      table, isa, [min_pixels](const Conv2dBackwardWeights& op, const Signature& s) {
        return pointwise_problem(op, s, min_pixels);
      });
}

// Returns the problem if our kernel for bf16 images in this layout can run it, else nothing.
template <class GradientProblem, Layout layout>
std::optional<GradientProblem> bf16_problem(const Conv2dBackwardWeights& op, const Signature& s) {
  const bool blocks =
      s.in[0].shape[1] % gradient_block == 0 && s.in[1].shape[1] % gradient_block == 0;
  if (!blocks || op.attributes.depthwise) {
    return std::nullopt;
  }
  for (const TensorDesc& image : s.in) {
    if (image.type != DataType::bf16 || image.layout != layout) {
      return std::nullopt;
    }
  }
  return GradientProblem{
      .x = s.in[0], .y = s.in[1], .window = op.attributes.window, .bias = op.attributes.bias};
}

bool any_window(const Window& /*window*/) { return true; }
bool has_stride(const Window& window) { return window.stride_h > 1 || window.stride_w > 1; }

// Returns whether products of bf16 pairs by vectors are the fastest of the processor.
bool has_bf16_gradients(const Isa& isa) {
  return isa.avx512_bf16 && multiplies_bf16_fast(isa) && !isa.amx_bf16;
}

void add_bf16_gradient_row(KernelTable& table, const Isa& isa) {
  add_own_gradient_row<Bf16WeightsGradient>(table, isa,
                                            bf16_problem<Bf16GradientProblem, Layout::nchw16c>);
}

void add_tile_gradient_row(KernelTable& table, const Isa& isa) {
  add_own_gradient_row<TileWeightsGradient>(table, isa,
                                            bf16_problem<TileGradientProblem, Layout::nhwc>);
}

void add_tile_lines_row(KernelTable& table, const Isa& isa) {
  add_own_gradient_row<TileLinesWeightsGradient>(
      table, isa,
      [](const Conv2dBackwardWeights& op, const Signature& s) -> std::optional<TileLinesProblem> {
        const TileLinesProblem problem{
            .x = s.in[0], .y = s.in[1], .window = op.attributes.window, .bias = op.attributes.bias};
        for (const TensorDesc& image : s.in) {
          if (image.type != DataType::bf16 || image.layout != Layout::nhwc || image.pitch != 0) {
            return std::nullopt;
          }
        }
        return !op.attributes.depthwise && problem.is_supported() ? std::optional(problem)
                                                                  : std::nullopt;
      });
}

// Returns how many written channels lie together in oneDNN's order of weights for tiles; nothing
// for another order. It has two names for one order of whole blocks, one for each depth.
std::optional<std::int64_t> tile_block(const TensorDesc& weights, bool backward) {
  struct Named {
    std::int64_t block;
    std::array<dnnl_format_tag_t, 2> forward, backward;
  };
  constexpr std::array<Named, 2> orders{
      {{32, {dnnl_AcdB16b32a2b, dnnl_AcdB32a2b}, {dnnl_BcdA16a32b2a, dnnl_BcdA32b2a}},
       {64, {dnnl_AcdB16b64a2b, dnnl_AcdB64a2b}, {dnnl_BcdA16a64b2a, dnnl_BcdA64b2a}}}};
  const dnnl::memory::desc got = memory_desc(weights);
  for (const Named& each : orders) {
    for (const dnnl_format_tag_t order : backward ? each.backward : each.forward) {
      if (got == dnnl::memory::desc(got.get_dims(), dnnl::memory::data_type::bf16,
                                    static_cast<Order>(order))) {
        return each.block;
      }
    }
  }
  return std::nullopt;
}

// Returns the problem of a convolution or data gradient in the operands of a spec of oneDNN, if our
// kernel reads weights in its order.
std::optional<TileConvProblem> tile_problem(const ConvAttributes& a, const Signature& s,
                                            bool backward) {
  TileConvProblem problem{.x = backward ? s.out[0] : s.in[0],
                          .y = backward ? s.in[0] : s.out[0],
                          .window = a.window,
                          .backward = backward};
  if (a.depthwise || (!backward && (a.bias || a.relu || a.residual))) {
    return std::nullopt;
  }
  for (const TensorDesc* const image : {&problem.x, &problem.y}) {
    if (image->type != DataType::bf16 || image->layout != Layout::nhwc ||
        image->shape[1] % tile_conv_channels != 0) {
      return std::nullopt;
    }
  }
  const auto block = tile_block(s.in[1], backward);
  if (!block || problem.outs() % *block != 0) {
    return std::nullopt;
  }
  problem.block = *block;
  return problem;
}

// oneDNN's first convolutions have blocks of as many output channels as a vector has floats.
void add_few_channels_row(KernelTable& table, const Isa& isa) {
  const std::int64_t block = isa.avx512 ? 16 : 8;
  add_own_gradient_row<FewChannelsWeightsGradient>(
      table, isa,
      [block](const Conv2dBackwardWeights& op,
              const Signature& s) -> std::optional<FewChannelsProblem> {
        FewChannelsProblem problem{.x = s.in[0],
                                   .y = s.in[1],
                                   .window = op.attributes.window,
                                   .bias = op.attributes.bias,
                                   .block = block};
        return !op.attributes.depthwise && is_supported(problem) ? std::optional(problem)
                                                                 : std::nullopt;
      },
      isa.avx512 ? Order::Acdb16a : Order::Acdb8a);
}

std::optional<Plan> plan_of(const Conv2d& op, const Signature& s, const Target& target) {
  return plan_forward(op, s, target);
}
std::optional<Plan> plan_of(const Conv2dBackwardData& op, const Signature& s,
                            const Target& target) {
  return plan_backward_data(op, s, target);
}

// Adds our kernel for O, which is Conv2d or Conv2dBackwardData, where oneDNN's takes the images as
// asked and weights in an order for tiles, so that the conversion of weights is the same with
// either.
template <class O>
void add_tile_row(KernelTable& table, const Isa& isa, bool (*is_wanted)(const Window&)) {
  constexpr bool backward = std::is_same_v<O, Conv2dBackwardData>;
  const Target target{cpu_engine(), isa};
  table.add<O>(
      [target, is_wanted](const O& op, const Signature& request) -> std::optional<KernelSpec> {
        if (!is_wanted(op.attributes.window)) {
          return std::nullopt;
        }
        std::optional<KernelSpec> spec = detail::describe(
            op, request, [&] { return plan_of(op, request, target); }, target.engine);
        if (!spec || spec->in[0] != request.in[0] || spec->out != request.out) {
          return std::nullopt;
        }
        const auto problem =
            tile_problem(op.attributes, {.in = spec->in, .out = spec->out}, backward);
        if (!problem) {
          return std::nullopt;
        }
        const TileConvolution work(*problem);
        spec->workspace = work.workspace();
        return work.is_useful() ? spec : std::nullopt;
      },
      [](const O& op, const Signature& s) {
        return own_kernel(TileConvolution(tile_problem(op.attributes, s, backward).value()));
      });
}

void add_direct_rows(KernelTable& table, const Isa& isa) {
  add_primitive<Conv2d>(table, isa, plan_forward);
  add_primitive<Conv2dBackwardData>(table, isa, plan_backward_data);
  add_primitive<Conv2dBackwardWeights>(table, isa, plan_backward_weights);
}

}  // namespace

void add_conv_rows(KernelTable& table, const Isa& isa) {
  if (isa.avx512) {
    add_pointwise_row(table, isa, min_pixels_of_pointwise);
  } else if (isa.avx2) {
    add_few_channels_row(table, isa);
    add_product_rows(table, isa, measured_product_rule);
  }
  if (has_bf16_gradients(isa)) {
    add_bf16_gradient_row(table, isa);
  }
  if (isa.amx_bf16) {
    add_tile_row<Conv2dBackwardData>(table, isa, has_stride);
    add_tile_gradient_row(table, isa);
    add_tile_lines_row(table, isa);
  }
  add_direct_rows(table, isa);
}

std::vector<ConvCandidateRows> library_conv_candidates(const Isa& isa) {
  std::vector<ConvCandidateRows> kinds;
  add_direct_rows(
      kinds.emplace_back(ConvCandidateRows{.name = "onednn", .has_layouts = true}).table, isa);
  if (isa.avx512) {
    add_pointwise_row(kinds.emplace_back(ConvCandidateRows{.name = "pointwise"}).table, isa, 1);
  }
  if (isa.avx2) {
    add_product_rows(kinds.emplace_back(ConvCandidateRows{.name = "products"}).table, isa, {});
    add_few_channels_row(kinds.emplace_back(ConvCandidateRows{.name = "few channels"}).table, isa);
  }
  if (has_bf16_gradients(isa)) {
    add_bf16_gradient_row(kinds.emplace_back(ConvCandidateRows{.name = "bf16 pairs"}).table, isa);
  }
  if (isa.amx_bf16) {
    KernelTable& tiles = kinds.emplace_back(ConvCandidateRows{.name = "bf16 tiles"}).table;
    add_tile_gradient_row(tiles, isa);
    add_tile_lines_row(tiles, isa);
    add_tile_row<Conv2d>(tiles, isa, any_window);
    add_tile_row<Conv2dBackwardData>(tiles, isa, any_window);
  }
  return kinds;
}

}  // namespace cnn::layers::cpu
