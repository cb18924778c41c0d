#include <algorithm>
#include <optional>
#include <span>

#include "layers/conv.h"
#include "layers/cpu/rows.h"
#include "layers/cpu/winograd_parts.h"

// Adds convolutions by Winograd's algorithm, in f32 or between bf16 images. For windows of 3 x 3 it
// needs at best 4 times fewer products than a direct convolution in tiles of 4 x 4 outputs, and
// 2.25 times in tiles of 2 x 2, which waste less at the edges; for 5 x 5 6.25 times and 2.8 times,
// for 7 in one dimension 2.8 and 1.75 times, for 3 in one twice. Weights are row-major.
namespace cnn::layers::cpu {
namespace {

// The ratio of direct to Winograd products, edges included, above which the algorithm is faster:
// measured on images of 7 x 7 in tiles of 2 x 2 (ratio 1.7), and in one dimension, where the
// transforms are cheaper, on 17 x 17 in tiles of two (ratio 1.65).
constexpr double min_saving = 1.9, min_saving_along_a_line = 1.5, min_saving_of_gradient = 1.5;

// Conditions that decide whether the algorithm is faster.
struct Terms {
  bool of_weights = false;  // for the gradient of weights
  bool fast_bf16 = false;   // bf16 products are faster than f32, so fewer saved operations count
  bool waived = false;      // the algorithm is taken wherever it can run, faster or not
  bool any_error = false;   // however large the rounding errors of a form are
};

// The loops that may be used.
struct Forms {
  std::span<const WinogradLoops> loops;
  std::optional<WinogradForm> only;  // of these
};

// Returns whether the algorithm applies: the channels must be enough to pay for transforming
// images.
bool applies(const ConvAttributes& a, const TensorDesc& x, const TensorDesc& y,
             const Terms& terms) {
  const std::int64_t min_channels = terms.waived ? winograd_block : 32;
  const Window& w = a.window;
  const bool small_step = w.stride_h == 1 && w.stride_w == 1;
  const auto fits = [&](const TensorDesc& image) {
    const bool fast = image.type == DataType::f32 || !terms.fast_bf16 || terms.waived;
    return is_vectorised(image.type) && fast && image.shape[1] % winograd_block == 0 &&
           image.shape[1] >= min_channels;
  };
  return small_step && !a.depthwise && w.pad_top < w.kernel_h && w.pad_left < w.kernel_w &&
         fits(x) && fits(y) && x.type == y.type;
}

// Returns whether rounding errors of the form are small enough. Those of F(4, 7) are four times
// those of direct sums, and batch norms in training enlarge them: with all its windows of 1 x 7
// computed so, the loss of inception4 differs from that of tf_cnn_benchmarks by 10 % more than its
// test allows. No batch norm follows a convolution with a bias: networks give it one or the other.
bool is_accurate(const WinogradForm& form, const ConvAttributes& a) {
  return form.taps() != 7 || form.outputs() == 2 || a.bias;
}

// Returns whether it is faster: the tiles must be enough to pay for transforming weights too.
bool pays(const WinogradProblem& p, const Terms& terms) {
  if (terms.waived) {
    return true;
  }
  // Products saved per point of a transformed weight. In gradients of 512 x 512 weights over images
  // of 7 x 7, 66 (8 images) save nothing with AVX-512 and 30 % with AVX2, 132 save 35 %. In
  // convolutions of such images, 33 cost 10 % with AVX-512 and save 15 % with AVX2, 66 save 20 %
  // and 25 %, and in those of 14 x 14 with AVX-512 61 cost 20 % and 66 save 10 %. More are needed
  // if transformed weights are written to memory, or if channels are so few that transforms of
  // images cost as much as products. Threads do not count: bits would depend on their number.
  constexpr std::int64_t enough_channels = 64;
  const bool weights_stay_in_cache = p.tiles() <= max_tiles_without_u &&
                                     p.x.shape[1] >= enough_channels &&
                                     p.y.shape[1] >= enough_channels;
  const double min_saved_by_a_point = terms.of_weights || weights_stay_in_cache ? 64 : 240;
  const Shape& y = p.y.shape;
  const auto direct = static_cast<double>(p.form.taps() * y[0] * y[2] * y[3]);
  const auto points = static_cast<double>(p.form.points());
  const auto needed = points * static_cast<double>(p.tiles());
  const bool line = p.form.taps_h == 1 || p.form.taps_w == 1;
  const double saving = terms.of_weights ? min_saving_of_gradient
                        : line           ? min_saving_along_a_line
                                         : min_saving;
  return direct - needed >= min_saved_by_a_point * points && direct >= saving * needed;
}

// Returns the form with the fewest operations; null: a direct convolution is faster.
const WinogradLoops* choose(const Forms& forms, const ConvAttributes& a, const TensorDesc& x,
                            const TensorDesc& y, const Terms& terms) {
  const WinogradLoops* chosen = nullptr;
  double least = 0;
  for (const WinogradLoops& each : forms.loops) {
    const WinogradForm& form = each.form;
    if (form.taps_h != a.window.kernel_h || form.taps_w != a.window.kernel_w ||
        (forms.only && form != *forms.only) || !(terms.any_error || is_accurate(form, a))) {
      continue;
    }
    const WinogradProblem problem{.x = x, .y = y, .form = form};
    if (pays(problem, terms) && (chosen == nullptr || problem.flops() < least)) {
      chosen = &each;
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
           .form = loops.form},
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
           .form = loops.form},
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
           .form = loops.form},
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
const WinogradLoops* choose_for(const Forms& forms, const Terms& terms, const O& op,
                                Signature& request) {
  const Roles operands = roles(op, request);
  return applies(op.attributes, operands.x, operands.y, terms)
             ? choose(forms, op.attributes, operands.x, operands.y, terms)
             : nullptr;
}

template <class O>
void add_row(KernelTable& table, const Forms& forms, const Terms& terms) {
  table.add<O>(
      [forms, terms](const O& op, Signature request) -> std::optional<KernelSpec> {
        for (auto* side : {&request.in, &request.out}) {
          for (TensorDesc& desc : *side) {  // like oneDNN's rows
            desc.type = desc.type == DataType::f16 ? DataType::f32 : desc.type;
          }
        }
        const WinogradLoops* const chosen = choose_for(forms, terms, op, request);
        if (chosen == nullptr) {
          return std::nullopt;
        }
        const KernelSpec images = in_layout(request, channels_together(request));
        Signature s{images.in, images.out};
        TensorDesc& w = roles(op, s).w;
        w = plain(w);
        const auto work = work_of(op, s, *chosen);
        KernelSpec spec{.workspace = work.workspace(), .in = s.in, .out = s.out};
        spec.flops = work.problem().flops();
        return spec;
      },
      [forms, terms](const O& op, const Signature& s) {
        Signature request = s;
        return own_kernel(work_of(op, s, *choose_for(forms, terms, op, request)));
      });
}

void add_rows(KernelTable& table, const Forms& forms, Terms terms) {
  add_row<Conv2d>(table, forms, terms);
  add_row<Conv2dBackwardData>(table, forms, terms);
  terms.of_weights = true;
  add_row<Conv2dBackwardWeights>(table, forms, terms);
}

}  // namespace

void add_winograd_rows(KernelTable& table, const Isa& isa,
                       const std::optional<WinogradForm>& only) {
  add_rows(table, {.loops = loops_for(isa).winograd, .only = only},
           {.fast_bf16 = multiplies_bf16_fast(isa), .any_error = only.has_value()});
}

void add_winograd_candidate(KernelTable& table, const Isa& isa, const WinogradForm& form) {
  add_rows(table, {.loops = loops_for(isa).winograd, .only = form}, {.waived = true});
}

}  // namespace cnn::layers::cpu
