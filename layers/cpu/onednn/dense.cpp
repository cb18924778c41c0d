#include "layers/dense.h"

#include <type_traits>
#include <utility>
#include <vector>

#include "layers/cpu/onednn/onednn.h"
#include "layers/cpu/onednn/relu.h"
#include "layers/cpu/own_kernel.h"
#include "layers/cpu/rows.h"
#include "layers/cpu/tile_dense.h"

namespace cnn::layers::cpu {
namespace {

using Forward = dnnl::inner_product_forward::primitive_desc;
using BackwardData = dnnl::inner_product_backward_data::primitive_desc;
using BackwardWeights = dnnl::inner_product_backward_weights::primitive_desc;

// Our w [K, M] is oneDNN's [outputs, inputs] transposed.
constexpr View transposed = View::transposed;

// Returns bf16 where it is faster; otherwise f32, with bf16 operands converted in the kernel.
DataType compute_type(DataType request, const Isa& isa) {
  return request == DataType::bf16 && multiplies_bf16_fast(isa) ? DataType::bf16 : DataType::f32;
}

TensorDesc matrix(const Shape& shape, DataType type) { return {.shape = shape, .type = type}; }

struct Matrices {
  const TensorDesc &x, &w, &y;
};

Forward forward_of(const Matrices& m, const dnnl::memory::desc& bias,
                   const dnnl::primitive_attr& attributes, const dnnl::engine& engine) {
  return {engine,
          dnnl::prop_kind::forward_training,
          memory_desc(m.x),
          any_order(m.w, transposed),
          bias,
          memory_desc(m.y),
          attributes};
}

std::optional<Plan> plan_forward(const Dense& op, const Signature& s, const Target& target) {
  const DataType type = compute_type(s.in[0].type, target.isa);
  Signature request{.in = {matrix(s.in[0].shape, type), matrix(s.in[1].shape, type)},
                    .out = {matrix(s.out[0].shape, type)}};
  std::vector<Plan::Argument> in{{DNNL_ARG_SRC}, {DNNL_ARG_WEIGHTS, transposed}};
  dnnl::memory::desc bias;
  if (op.attributes.bias) {
    request.in.push_back({.shape = s.in[2].shape});
    in.push_back({DNNL_ARG_BIAS});
    bias = memory_desc(request.in[2]);
  }
  dnnl::primitive_attr attributes = user_scratchpad();
  if (op.attributes.relu) {
    dnnl::post_ops after;
    append_relu(after);
    attributes.set_post_ops(after);
  }
  const Forward primitive =
      forward_of({request.in[0], request.in[1], request.out[0]}, bias, attributes, target.engine);
  return make_plan(request, primitive, std::move(in), {{DNNL_ARG_DST}});
}

std::optional<Plan> plan_backward_data(const DenseBackwardData& /*op*/, const Signature& s,
                                       const Target& target) {
  const DataType type = compute_type(s.in[0].type, target.isa);
  const TensorDesc dy = matrix(s.in[0].shape, type), w = matrix(s.in[1].shape, type),
                   dx = matrix(s.out[0].shape, type);
  const Forward hint = forward_of({dx, w, dy}, {}, user_scratchpad(), target.engine);
  const BackwardData primitive(target.engine, memory_desc(dx), any_order(w, transposed),
                               memory_desc(dy), hint, user_scratchpad());
  return make_plan({.in = {dy, w}, .out = {dx}}, primitive,
                   {{DNNL_ARG_DIFF_DST}, {DNNL_ARG_WEIGHTS, transposed}}, {{DNNL_ARG_DIFF_SRC}});
}

std::optional<Plan> plan_backward_weights(const DenseBackwardWeights& op, const Signature& s,
                                          const Target& target) {
  const DataType type = compute_type(s.in[0].type, target.isa);
  const TensorDesc x = matrix(s.in[0].shape, type), dy = matrix(s.in[1].shape, type),
                   dw = matrix(s.out[0].shape, DataType::f32);
  Signature request{.in = {x, dy}, .out = {dw}};
  std::vector<Plan::Argument> out{{DNNL_ARG_DIFF_WEIGHTS, transposed}};
  dnnl::memory::desc dbias;
  if (op.attributes.bias) {
    request.out.push_back({.shape = s.out[1].shape});
    out.push_back({DNNL_ARG_DIFF_BIAS});
    dbias = memory_desc(request.out[1]);
  }
  const Forward hint =
      forward_of({x, matrix(dw.shape, type), dy}, {}, user_scratchpad(), target.engine);
  const BackwardWeights primitive(target.engine, memory_desc(x), any_order(dw, transposed), dbias,
                                  memory_desc(dy), hint, user_scratchpad());
  return make_plan(request, primitive, {{DNNL_ARG_SRC}, {DNNL_ARG_DIFF_DST}}, std::move(out));
}

// Returns f32 weights in the order of our kernels, which is one of oneDNN's: [M/64][K][64].
TensorDesc slabs_of_weights(const Shape& w) {
  const TensorDesc desc{.shape = w};
  return tensor_desc(desc,
                     {any_order(desc, transposed).get_dims(), onednn_type(desc.type),
                      dnnl::memory::format_tag::AB16b64a},
                     transposed)
      .value();
}

TileDenseProblem tile_problem(const Dense& op, const Signature& s) {
  return {.rows = s.in[0].shape[0],
          .ins = s.in[1].shape[0],
          .outs = s.in[1].shape[1],
          .bias = op.attributes.bias,
          .relu = op.attributes.relu};
}
TileDenseProblem tile_problem(const DenseBackwardData& /*op*/, const Signature& s) {
  return {.rows = s.in[0].shape[0], .ins = s.in[1].shape[0], .outs = s.in[1].shape[1]};
}
TileDenseProblem tile_problem(const DenseBackwardWeights& op, const Signature& s) {
  return {.rows = s.in[0].shape[0],
          .ins = s.out[0].shape[0],
          .outs = s.out[0].shape[1],
          .bias = op.attributes.bias};
}

TileDenseForward tile_work(const Dense& op, const Signature& s) {
  return TileDenseForward(tile_problem(op, s));
}
TileDenseBackwardData tile_work(const DenseBackwardData& op, const Signature& s) {
  return TileDenseBackwardData(tile_problem(op, s));
}
TileDenseBackwardWeights tile_work(const DenseBackwardWeights& op, const Signature& s) {
  return {tile_problem(op, s), loops_for(effective_isa())};
}

// Adds our kernels of one op for a few rows in bf16 and weights of so many bytes that no cache
// holds them.
template <class O>
void add_tile_row(KernelTable& table) {
  table.add<O>(
      [](const O& op, const Signature& request) -> std::optional<KernelSpec> {
        constexpr std::int64_t min_weights = 1 << 20;
        const TileDenseProblem problem = tile_problem(op, request);
        if (request.in[0].type != DataType::bf16 || !problem.is_supported() ||
            problem.ins * problem.outs < min_weights) {
          return std::nullopt;
        }
        KernelSpec spec = as_requested(request, tile_work(op, request).workspace());
        for (auto* side : {&spec.in, &spec.out}) {
          for (TensorDesc& desc : *side) {
            desc = {.shape = desc.shape, .type = desc.type};
          }
        }
        TensorDesc& w = std::is_same_v<O, DenseBackwardWeights> ? spec.out[0] : spec.in[1];
        w = slabs_of_weights(w.shape);
        return spec;
      },
      [](const O& op, const Signature& s) { return own_kernel(tile_work(op, s)); });
}

}  // namespace

void add_dense_rows(KernelTable& table, const KernelChoice& choice) {
  const Isa& isa = choice.isa;
  if (isa.amx_bf16 && choice.weights_change) {
    add_tile_row<Dense>(table);
    add_tile_row<DenseBackwardData>(table);
    add_tile_row<DenseBackwardWeights>(table);
  }
  add_primitive<Dense>(table, isa, plan_forward);
  add_primitive<DenseBackwardData>(table, isa, plan_backward_data);
  add_primitive<DenseBackwardWeights>(table, isa, plan_backward_weights);
}

}  // namespace cnn::layers::cpu
