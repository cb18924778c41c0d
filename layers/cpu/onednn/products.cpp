#include "layers/cpu/onednn/products.h"

#include <optional>
#include <type_traits>

#include "layers/conv.h"
#include "layers/cpu/onednn/onednn.h"
#include "layers/cpu/own_kernel.h"
#include "layers/cpu/pointwise_conv.h"
#include "layers/cpu/pointwise_gradient.h"
#include "layers/cpu/rows.h"

namespace cnn::layers::cpu {
namespace {

// Returns f32 weights in the order that our kernels share: [O/16][I][16].
TensorDesc blocked_weights(const Shape& w) {
  static_assert(pointwise_block == 16);
  const TensorDesc desc{.shape = w};
  return tensor_desc(desc, {any_order(desc).get_dims(), onednn_type(desc.type),
                            dnnl::memory::format_tag::ABcd16b16a})
      .value();
}

// The images of a 1 x 1 convolution, or of one of its gradients.
struct PointwiseImages {
  TensorDesc x, y;
};
PointwiseImages pointwise_images(const Conv2d& /*op*/, const Signature& s) {
  return {.x = s.in[0], .y = s.out[0]};
}
PointwiseImages pointwise_images(const Conv2dBackwardData& /*op*/, const Signature& s) {
  return {.x = s.out[0], .y = s.in[0]};
}
PointwiseImages pointwise_images(const Conv2dBackwardWeights& /*op*/, const Signature& s) {
  return {.x = s.in[0], .y = s.in[1]};
}

// Returns the images if our kernels multiply them and they have so many channels, else nothing.
template <class O>
std::optional<PointwiseImages> multiplied_images(const O& op, const Signature& s,
                                                 std::int64_t min_channels) {
  const ConvAttributes& a = op.attributes;
  const Window& w = a.window;
  const bool one = w.kernel_h == 1 && w.kernel_w == 1 && w.pad_top == 0 && w.pad_bottom == 0 &&
                   w.pad_left == 0 && w.pad_right == 0;
  if (!one || a.depthwise || a.residual || a.relu) {
    return std::nullopt;
  }
  PointwiseImages images = pointwise_images(op, s);
  for (TensorDesc* const image : {&images.x, &images.y}) {
    const std::int64_t channels = image->shape[1];
    const bool f32 = image->type == DataType::f32 || image->type == DataType::f16;
    if (!f32 || channels < min_channels || channels % pointwise_block != 0) {
      return std::nullopt;
    }
    *image = {.shape = image->shape, .layout = Layout::nhwc};
  }
  return images;
}

// Returns the description of one of our kernels, with nhwc images in f32, as oneDNN's rows take
// f16, and weights in our order. It is the same whatever the request's layouts are, so that a
// request in the layouts of an answer has this answer again.
KernelSpec blocked_spec(const Signature& request, std::size_t workspace, bool is_output) {
  KernelSpec spec = in_layout(request, Layout::nhwc, workspace);
  for (auto* side : {&spec.in, &spec.out}) {
    for (TensorDesc& desc : *side) {
      desc.type = DataType::f32;
    }
  }
  TensorDesc& w = is_output ? spec.out[0] : spec.in[1];
  w = blocked_weights(w.shape);
  return spec;
}

// Adds products of small matrices for O, which is Conv2d or Conv2dBackwardData.
template <class O>
void add_product_row(KernelTable& table, const Isa& isa, std::int64_t min_channels) {
  constexpr bool is_backward = std::is_same_v<O, Conv2dBackwardData>;
  const auto problem_of =
      [min_channels](const O& op, const Signature& s) -> std::optional<PointwiseConvProblem> {
    const auto images = multiplied_images(op, s, min_channels);
    if (!images || (op.attributes.bias && !is_backward)) {
      return std::nullopt;
    }
    return PointwiseConvProblem{.x = images->x,
                                .y = images->y,
                                .stride_h = op.attributes.window.stride_h,
                                .stride_w = op.attributes.window.stride_w,
                                .backward = is_backward};
  };
  table.add<O>(
      [isa, problem_of](const O& op, const Signature& request) -> std::optional<KernelSpec> {
        const auto problem = problem_of(op, request);
        return problem ? std::optional(blocked_spec(
                             request, PointwiseConvolution(*problem, loops_for(isa)).workspace(),
                             false))
                       : std::nullopt;
      },
      [isa, problem_of](const O& op, const Signature& s) {
        return own_kernel(PointwiseConvolution(problem_of(op, s).value(), loops_for(isa)));
      });
}

// Adds weight gradients of nhwc images.
void add_product_gradient_row(KernelTable& table, const Isa& isa, const ProductRule& rule) {
  const auto problem_of = [rule](const Conv2dBackwardWeights& op,
                                 const Signature& s) -> std::optional<PointwiseProblem> {
    const auto images = multiplied_images(op, s, rule.min_channels);
    if (!images) {
      return std::nullopt;
    }
    const Window& w = op.attributes.window;
    const std::int64_t pixels = images->y.shape[2] * images->y.shape[3];
    if (w.stride_h == 1 && w.stride_w == 1 &&
        (pixels < rule.min_pixels || pixels >= rule.max_pixels)) {
      return std::nullopt;
    }
    return PointwiseProblem{.x = images->x,
                            .y = images->y,
                            .bias = op.attributes.bias,
                            .stride_h = w.stride_h,
                            .stride_w = w.stride_w};
  };
  table.add<Conv2dBackwardWeights>(
      [isa, problem_of](const Conv2dBackwardWeights& op,
                        const Signature& request) -> std::optional<KernelSpec> {
        const auto problem = problem_of(op, request);
        if (!problem) {
          return std::nullopt;
        }
        const PointwiseWeightsGradient work(*problem, loops_for(isa));
        KernelSpec spec = blocked_spec(request, work.workspace(), true);
        spec.extra_traffic = work.traffic_between();
        return spec;
      },
      [isa, problem_of](const Conv2dBackwardWeights& op, const Signature& s) {
        return own_kernel(PointwiseWeightsGradient(problem_of(op, s).value(), loops_for(isa)));
      });
}

}  // namespace

void add_product_rows(KernelTable& table, const Isa& isa, const ProductRule& rule) {
  add_product_row<Conv2d>(table, isa, rule.min_channels);
  add_product_row<Conv2dBackwardData>(table, isa, rule.min_channels);
  add_product_gradient_row(table, isa, rule);
}

}  // namespace cnn::layers::cpu
