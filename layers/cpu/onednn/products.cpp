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

// Everything that rows of one kind of images share.
struct ProductRows {
  const Loops* loops;
  ProductRule rule;
  ProductImages images;
};

// Returns the images if our kernels multiply them and they have so many channels, else nothing.
template <class O>
std::optional<PointwiseImages> multiplied_images(const O& op, const Signature& s,
                                                 const ProductRows& rows) {
  const ConvAttributes& a = op.attributes;
  const Window& w = a.window;
  const bool one = w.kernel_h == 1 && w.kernel_w == 1 && w.pad_top == 0 && w.pad_bottom == 0 &&
                   w.pad_left == 0 && w.pad_right == 0;
  if (!one || a.depthwise) {
    return std::nullopt;
  }
  PointwiseImages images = pointwise_images(op, s);
  for (TensorDesc* const image : {&images.x, &images.y}) {
    const std::int64_t channels = image->shape[1];
    // Separate nodes convert f16.
    const DataType type = image->type == DataType::f16 ? DataType::f32 : image->type;
    if (type != rows.images.type || channels < rows.rule.min_channels ||
        channels % pointwise_block != 0) {
      return std::nullopt;
    }
    *image = {.shape = image->shape, .type = type, .layout = rows.images.layout};
  }
  return images;
}

// Returns the description of one of our kernels, with images as its rows take them and weights in
// our order. It is the same whatever the request's layouts are, so that a request in the layouts of
// an answer has this answer again.
KernelSpec blocked_spec(const Signature& request, const ProductRows& rows, std::size_t workspace,
                        bool is_output) {
  KernelSpec spec = in_layout(request, rows.images.layout, workspace);
  TensorDesc& w = is_output ? spec.out[0] : spec.in[1];
  for (auto* side : {&spec.in, &spec.out}) {
    for (TensorDesc& desc : *side) {
      desc.type = desc.shape.rank() == 4 && &desc != &w ? rows.images.type : DataType::f32;
    }
  }
  w = blocked_weights(w.shape);
  return spec;
}

bool is_served(const PointwiseConvProblem& problem, const ProductRule& rule) {
  const Shape& y = problem.y.shape;
  return problem.outs() <= rule.max_outs && problem.ins() >= rule.min_reduction * problem.outs() &&
         y[2] * y[3] >= rule.min_image_pixels && (rule.strides || !problem.has_stride());
}

// Adds products of small matrices for O, which is Conv2d or Conv2dBackwardData.
template <class O>
void add_product_row(KernelTable& table, const ProductRows& rows) {
  constexpr bool is_backward = std::is_same_v<O, Conv2dBackwardData>;
  const auto problem_of = [rows](const O& op,
                                 const Signature& s) -> std::optional<PointwiseConvProblem> {
    const ConvAttributes& a = op.attributes;
    const auto images = multiplied_images(op, s, rows);
    if (!images) {
      return std::nullopt;
    }
    const PointwiseConvProblem problem{.x = images->x,
                                       .y = images->y,
                                       .stride_h = a.window.stride_h,
                                       .stride_w = a.window.stride_w,
                                       .backward = is_backward,
                                       .bias = a.bias && !is_backward,
                                       .residual = a.residual && !is_backward,
                                       .relu = a.relu && !is_backward};
    return is_served(problem, rows.rule) ? std::optional(problem) : std::nullopt;
  };
  table.add<O>(
      [rows, problem_of](const O& op, const Signature& request) -> std::optional<KernelSpec> {
        const auto problem = problem_of(op, request);
        return problem ? std::optional(blocked_spec(
                             request, rows, PointwiseConvolution(*problem, *rows.loops).workspace(),
                             false))
                       : std::nullopt;
      },
      [rows, problem_of](const O& op, const Signature& s) {
        return own_kernel(PointwiseConvolution(problem_of(op, s).value(), *rows.loops));
      });
}

void add_product_gradient_row(KernelTable& table, const ProductRows& rows) {
  const auto problem_of = [rows](const Conv2dBackwardWeights& op,
                                 const Signature& s) -> std::optional<PointwiseProblem> {
    const auto images = multiplied_images(op, s, rows);
    if (!images) {
      return std::nullopt;
    }
    const Window& w = op.attributes.window;
    const std::int64_t pixels = images->y.shape[2] * images->y.shape[3];
    if (w.stride_h == 1 && w.stride_w == 1 &&
        (pixels < rows.rule.min_pixels || pixels >= rows.rule.max_pixels)) {
      return std::nullopt;
    }
    return PointwiseProblem{.x = images->x,
                            .y = images->y,
                            .bias = op.attributes.bias,
                            .stride_h = w.stride_h,
                            .stride_w = w.stride_w};
  };
  table.add<Conv2dBackwardWeights>(
      [rows, problem_of](const Conv2dBackwardWeights& op,
                         const Signature& request) -> std::optional<KernelSpec> {
        const auto problem = problem_of(op, request);
        if (!problem) {
          return std::nullopt;
        }
        const PointwiseWeightsGradient work(*problem, *rows.loops);
        KernelSpec spec = blocked_spec(request, rows, work.workspace(), true);
        spec.extra_traffic = work.traffic_between();
        return spec;
      },
      [rows, problem_of](const Conv2dBackwardWeights& op, const Signature& s) {
        return own_kernel(PointwiseWeightsGradient(problem_of(op, s).value(), *rows.loops));
      });
}

}  // namespace

void add_product_rows(KernelTable& table, const Isa& isa, const ProductRule& rule,
                      const ProductImages& images) {
  add_product_conv_rows(table, isa, rule, images);
  add_product_gradient_row(table, {.loops = &loops_for(isa), .rule = rule, .images = images});
}

void add_product_conv_rows(KernelTable& table, const Isa& isa, const ProductRule& rule,
                           const ProductImages& images) {
  const ProductRows rows{.loops = &loops_for(isa), .rule = rule, .images = images};
  add_product_row<Conv2d>(table, rows);
  add_product_row<Conv2dBackwardData>(table, rows);
}

}  // namespace cnn::layers::cpu
