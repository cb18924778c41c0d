#include <algorithm>
#include <optional>

#include "layers/conv.h"
#include "layers/cpu/rows.h"
#include "layers/cpu/winograd_parts.h"

// The rows of convolutions by Winograd's algorithm, in f32 or between bf16 images: at best 4 times
// fewer products than directly in tiles of 4 x 4 outputs, and 2.25 times in tiles of 2 x 2, which
// cut less at the edges. Weights are row-major.
namespace cnn::layers::cpu {
namespace {

// How many times fewer products than directly it must need to be the faster, odd edges counted:
// measured on images of 7 x 7 in tiles of 2 x 2 (1.7 times fewer).
constexpr double least_saving = 1.9, least_saving_of_gradient = 1.5;

// The terms that decide where the algorithm pays.
struct Terms {
  double saving = 0;
  bool fast_bf16 = false;  // bf16 products are faster than f32: these save more
};

// The loops for both sizes of tiles; null: not to be used.
struct TileLoops {
  const WinogradLoops *by_2 = nullptr, *by_4 = nullptr;
};

// Whether the algorithm applies: there must be channels enough to pay for the transforms of images.
bool applies(const ConvAttributes& a, const TensorDesc& x, const TensorDesc& y,
             const Terms& terms) {
  constexpr std::int64_t least_channels = 32;
  const Window& w = a.window;
  const bool small_step = w.kernel_h == 3 && w.kernel_w == 3 && w.stride_h == 1 && w.stride_w == 1;
  const auto fits = [&](const TensorDesc& image) {
    const bool fast = image.type == DataType::f32 || !terms.fast_bf16;
    return is_vectorised(image.type) && fast && image.shape[1] % winograd_block == 0 &&
           image.shape[1] >= least_channels;
  };
  return small_step && !a.depthwise && std::max(w.pad_top, w.pad_left) < w.kernel_h && fits(x) &&
         fits(y) && x.type == y.type;
}

// Whether it pays: there must be tiles enough to pay for the transforms of weights.
bool pays(const WinogradProblem& p, double saving) {
  constexpr std::int64_t least_points = 192 * 16;
  const Shape& y = p.y.shape;
  const auto direct = static_cast<double>(winograd_taps * y[0] * y[2] * y[3]);
  const std::int64_t points = winograd_points(p.tile) * p.tiles();
  return points >= least_points && direct / static_cast<double>(points) >= saving;
}

// Tiles of the size that needs fewer operations; null: neither pays.
const WinogradLoops* choose(const TileLoops& loops, const TensorDesc& x, const TensorDesc& y,
                            double saving) {
  const WinogradLoops* chosen = nullptr;
  double least = 0;
  for (const WinogradLoops* const each : {loops.by_2, loops.by_4}) {
    if (each == nullptr) {
      continue;
    }
    const WinogradProblem problem{.x = x, .y = y, .tile = each->tile};
    if (pays(problem, saving) && (chosen == nullptr || problem.flops() < least)) {
      chosen = each;
      least = problem.flops();
    }
  }
  return chosen;
}

WinogradConvolution work_of(const Conv2d& op, const Signature& s, const WinogradLoops& loops) {
  const ConvAttributes& a = op.attributes;
  return {{.x = s.in[0],
           .y = s.out[0],
           .pad_top = a.window.pad_top,
           .pad_left = a.window.pad_left,
           .tile = loops.tile},
          {.bias = a.bias, .residual = a.residual, .relu = a.relu},
          loops};
}

WinogradConvolution work_of(const Conv2dBackwardData& op, const Signature& s,
                            const WinogradLoops& loops) {
  const Window& w = op.attributes.window;
  return {{.x = s.in[0],
           .y = s.out[0],
           .pad_top = w.kernel_h - 1 - w.pad_top,
           .pad_left = w.kernel_w - 1 - w.pad_left,
           .tile = loops.tile},
          {.rotated = true},
          loops};
}

WinogradWeightsGradient work_of(const Conv2dBackwardWeights& op, const Signature& s,
                                const WinogradLoops& loops) {
  const Window& w = op.attributes.window;
  return {{.x = s.in[0],
           .y = s.in[1],
           .pad_top = w.pad_top,
           .pad_left = w.pad_left,
           .tile = loops.tile},
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
const WinogradLoops* choose_for(const TileLoops& loops, const Terms& terms, const O& op,
                                Signature& asked) {
  const Roles operands = roles(op, asked);
  return applies(op.attributes, operands.x, operands.y, terms)
             ? choose(loops, operands.x, operands.y, terms.saving)
             : nullptr;
}

template <class O>
void add_row(KernelTable& table, const TileLoops& loops, const Terms& terms) {
  table.add<O>(
      [loops, terms](const O& op, Signature asked) -> std::optional<KernelSpec> {
        for (auto* side : {&asked.in, &asked.out}) {
          for (TensorDesc& desc : *side) {  // as oneDNN's rows do
            desc.type = desc.type == DataType::f16 ? DataType::f32 : desc.type;
          }
        }
        const WinogradLoops* const chosen = choose_for(loops, terms, op, asked);
        if (chosen == nullptr) {
          return std::nullopt;
        }
        const KernelSpec images = in_layout(asked, channels_together(asked));
        Signature s{images.in, images.out};
        TensorDesc& w = roles(op, s).w;
        w = plain(w);
        const auto work = work_of(op, s, *chosen);
        KernelSpec spec{.workspace = work.workspace(), .in = s.in, .out = s.out};
        spec.flops = work.problem().flops();
        return spec;
      },
      [loops, terms](const O& op, const Signature& s) {
        Signature asked = s;
        return own_kernel(work_of(op, s, *choose_for(loops, terms, op, asked)));
      });
}

}  // namespace

void add_winograd_rows(KernelTable& table, const Isa& isa, std::int64_t tile) {
  const Loops& all = loops_for(isa);
  const TileLoops loops{.by_2 = tile == 4 ? nullptr : &all.winograd_by_2,
                        .by_4 = tile == 2 ? nullptr : &all.winograd_by_4};
  const bool fast_bf16 = multiplies_bf16_fast(isa);
  add_row<Conv2d>(table, loops, {least_saving, fast_bf16});
  add_row<Conv2dBackwardData>(table, loops, {least_saving, fast_bf16});
  add_row<Conv2dBackwardWeights>(table, loops, {least_saving_of_gradient, fast_bf16});
}

}  // namespace cnn::layers::cpu
