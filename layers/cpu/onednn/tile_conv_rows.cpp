#include "layers/cpu/onednn/tile_conv_rows.h"

#include <array>
#include <optional>
#include <type_traits>

#include "layers/conv.h"
#include "layers/cpu/onednn/conv_plans.h"
#include "layers/cpu/own_kernel.h"
#include "layers/cpu/tile_conv.h"

namespace cnn::layers::cpu {
namespace {

bool has_stride(const Window& window) { return window.stride_h > 1 || window.stride_w > 1; }

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
                                    static_cast<dnnl::memory::format_tag>(order))) {
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

template <class O>
void add_tile_row(KernelTable& table, const Isa& isa, bool strided_only) {
  constexpr bool backward = std::is_same_v<O, Conv2dBackwardData>;
  const Target target{cpu_engine(), isa};
  table.add<O>(
      [target, strided_only](const O& op, const Signature& request) -> std::optional<KernelSpec> {
        if (strided_only && !has_stride(op.attributes.window)) {
          return std::nullopt;
        }
        std::optional<KernelSpec> spec = detail::describe(
            op, request, [&] { return plan_conv(op, request, target); }, target.engine);
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

}  // namespace

void add_strided_tile_row(KernelTable& table, const Isa& isa) {
  add_tile_row<Conv2dBackwardData>(table, isa, true);
}

void add_tile_conv_rows(KernelTable& table, const Isa& isa) {
  add_tile_row<Conv2d>(table, isa, false);
  add_tile_row<Conv2dBackwardData>(table, isa, false);
}

}  // namespace cnn::layers::cpu
