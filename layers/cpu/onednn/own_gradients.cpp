#include "layers/cpu/onednn/own_gradients.h"

#include <optional>

#include "layers/conv.h"
#include "layers/cpu/bf16_gradient.h"
#include "layers/cpu/few_channels_gradient.h"
#include "layers/cpu/onednn/conv_plans.h"
#include "layers/cpu/pointwise_gradient.h"
#include "layers/cpu/rows.h"
#include "layers/cpu/tile_gradient.h"
#include "layers/cpu/tile_lines.h"

namespace cnn::layers::cpu {
namespace {

using WeightOrder = dnnl::memory::format_tag;

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

// Describes a kernel of ours where oneDNN's takes the images as asked and would leave the gradient
// in the order in which ours does, so that the parameter's packing is the same with either.
template <class Work>
std::optional<KernelSpec> describe_own(const Conv2dBackwardWeights& op, const Signature& request,
                                       const Target& target, WeightOrder order,
                                       const Work& kernel) {
  std::optional<KernelSpec> spec = detail::describe(
      op, request, [&] { return plan_conv(op, request, target); }, target.engine);
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
                          WeightOrder order = WeightOrder::ABcd16b16a) {
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

}  // namespace

void add_pointwise_row(KernelTable& table, const Isa& isa, std::int64_t min_pixels) {
  add_own_gradient_row<PointwiseWeightsGradient>(
      table, isa, [min_pixels](const Conv2dBackwardWeights& op, const Signature& s) {
        return pointwise_problem(op, s, min_pixels);
      });
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
      isa.avx512 ? WeightOrder::Acdb16a : WeightOrder::Acdb8a);
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

}  // namespace cnn::layers::cpu
