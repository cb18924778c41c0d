#include "layers/dense.h"

#include <utility>
#include <vector>

#include "layers/cpu/onednn/onednn.h"
#include "layers/cpu/onednn/relu.h"
#include "layers/cpu/rows.h"

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

Forward forward_of(const TensorDesc& x, const TensorDesc& w, const TensorDesc& y,
                   const dnnl::memory::desc& bias, const dnnl::primitive_attr& attributes,
                   const dnnl::engine& engine) {
  return {engine,         dnnl::prop_kind::forward_training,
          memory_desc(x), any_order(w, transposed),
          bias,           memory_desc(y),
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
      forward_of(request.in[0], request.in[1], request.out[0], bias, attributes, target.engine);
  return make_plan(request, primitive, std::move(in), {{DNNL_ARG_DST}});
}

std::optional<Plan> plan_backward_data(const DenseBackwardData& /*op*/, const Signature& s,
                                       const Target& target) {
  const DataType type = compute_type(s.in[0].type, target.isa);
  const TensorDesc dy = matrix(s.in[0].shape, type), w = matrix(s.in[1].shape, type),
                   dx = matrix(s.out[0].shape, type);
  const Forward hint = forward_of(dx, w, dy, {}, user_scratchpad(), target.engine);
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
      forward_of(x, matrix(dw.shape, type), dy, {}, user_scratchpad(), target.engine);
  const BackwardWeights primitive(target.engine, memory_desc(x), any_order(dw, transposed), dbias,
                                  memory_desc(dy), hint, user_scratchpad());
  return make_plan(request, primitive, {{DNNL_ARG_SRC}, {DNNL_ARG_DIFF_DST}}, std::move(out));
}

}  // namespace

void add_dense_rows(KernelTable& table, const Isa& isa) {
  add_primitive<Dense>(table, isa, plan_forward);
  add_primitive<DenseBackwardData>(table, isa, plan_backward_data);
  add_primitive<DenseBackwardWeights>(table, isa, plan_backward_weights);
}

}  // namespace cnn::layers::cpu
