#include <algorithm>
#include <optional>

#include "layers/conv.h"
#include "layers/cpu/rows.h"
#include "layers/cpu/winograd_parts.h"

// The rows of convolutions by Winograd's algorithm, in f32 or between bf16 images: at best 2.25
// times fewer products than directly. Weights are row-major.
namespace cnn::layers::cpu {
namespace {

// How many times fewer products than directly it must need to be the faster, odd edges counted:
// measured on images of 7 x 7 (1.7 times fewer), where weights are read for few tiles.
constexpr double least_saving = 1.9, least_saving_of_gradient = 1.5;

// The terms that decide where the algorithm pays.
struct Terms {
  double saving = 0;
  bool fast_bf16 = false;  // bf16 products are faster than f32: these save more
};

// Whether the algorithm applies and pays: there must be channels enough to pay for the transforms
// of images, and tiles enough to pay for those of weights.
bool serves(const ConvAttributes& a, const TensorDesc& x, const TensorDesc& y, const Terms& terms) {
  constexpr std::int64_t least_channels = 32, least_tiles = 192;
  const Window& w = a.window;
  const bool small_step = w.kernel_h == 3 && w.kernel_w == 3 && w.stride_h == 1 && w.stride_w == 1;
  const auto fits = [&](const TensorDesc& image) {
    const bool fast = image.type == DataType::f32 || !terms.fast_bf16;
    return is_vectorised(image.type) && fast && image.shape[1] % winograd_block == 0 &&
           image.shape[1] >= least_channels;
  };
  if (!small_step || a.depthwise || std::max(w.pad_top, w.pad_left) >= w.kernel_h || !fits(x) ||
      !fits(y) || x.type != y.type) {
    return false;
  }
  const WinogradProblem p{.x = x, .y = y};
  const auto direct = static_cast<double>(winograd_taps * y.shape[0] * y.shape[2] * y.shape[3]);
  return p.tiles() >= least_tiles &&
         direct / static_cast<double>(winograd_points * p.tiles()) >= terms.saving;
}

WinogradConvolution work_of(const Conv2d& op, const Signature& s, const WinogradLoops& loops) {
  const ConvAttributes& a = op.attributes;
  return {{.x = s.in[0], .y = s.out[0], .pad_top = a.window.pad_top, .pad_left = a.window.pad_left},
          {.bias = a.bias, .residual = a.residual, .relu = a.relu},
          loops};
}

WinogradConvolution work_of(const Conv2dBackwardData& op, const Signature& s,
                            const WinogradLoops& loops) {
  const Window& w = op.attributes.window;
  return {{.x = s.in[0],
           .y = s.out[0],
           .pad_top = w.kernel_h - 1 - w.pad_top,
           .pad_left = w.kernel_w - 1 - w.pad_left},
          {.rotated = true},
          loops};
}

WinogradWeightsGradient work_of(const Conv2dBackwardWeights& op, const Signature& s,
                                const WinogradLoops& loops) {
  const Window& w = op.attributes.window;
  return {{.x = s.in[0], .y = s.in[1], .pad_top = w.pad_top, .pad_left = w.pad_left},
          op.attributes.bias,
          loops};
}

// x and y of an op, and its weights or their gradient.
struct Roles {
  TensorDesc &x, &y, &w;
};
Roles roles(const Conv2d& /*op*/, Signature& s) { return {s.in[0], s.out[0], s.in[1]}; }
Roles roles(const Conv2dBackwardData& /*op*/, Signature& s) { return {s.out[0], s.in[0], s.in[1]}; }
Roles roles(const Conv2dBackwardWeights& /*op*/, Signature& s) {
  return {s.in[0], s.in[1], s.out[0]};
}

template <class O>
void add_row(KernelTable& table, const WinogradLoops& loops, const Terms& terms) {
  table.add<O>(
      [&loops, terms](const O& op, Signature asked) -> std::optional<KernelSpec> {
        for (auto* side : {&asked.in, &asked.out}) {
          for (TensorDesc& desc : *side) {  // as oneDNN's rows do
            desc.type = desc.type == DataType::f16 ? DataType::f32 : desc.type;
          }
        }
        const Roles operands = roles(op, asked);
        if (!serves(op.attributes, operands.x, operands.y, terms)) {
          return std::nullopt;
        }
        const KernelSpec images = in_layout(asked, channels_together(asked));
        Signature s{images.in, images.out};
        TensorDesc& w = roles(op, s).w;
        w = plain(w);
        const auto work = work_of(op, s, loops);
        KernelSpec spec{.workspace = work.workspace(), .in = s.in, .out = s.out};
        spec.flops = work.problem().flops();
        return spec;
      },
      [&loops](const O& op, const Signature& s) { return own_kernel(work_of(op, s, loops)); });
}

}  // namespace

void add_winograd_rows(KernelTable& table, const Isa& isa) {
  const WinogradLoops& loops = loops_for(isa).winograd;
  const bool fast_bf16 = multiplies_bf16_fast(isa);
  add_row<Conv2d>(table, loops, {least_saving, fast_bf16});
  add_row<Conv2dBackwardData>(table, loops, {least_saving, fast_bf16});
  add_row<Conv2dBackwardWeights>(table, loops, {least_saving_of_gradient, fast_bf16});
}

}  // namespace cnn::layers::cpu
