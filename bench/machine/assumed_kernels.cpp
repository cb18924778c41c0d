#include "bench/machine/assumed_kernels.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "layers/activation.h"
#include "layers/all_reduce.h"
#include "layers/batch_norm.h"
#include "layers/concat.h"
#include "layers/conv.h"
#include "layers/dense.h"
#include "layers/device_layout.h"
#include "layers/elementwise.h"
#include "layers/fused_conv.h"
#include "layers/lrn.h"
#include "layers/optimizer.h"
#include "layers/pool.h"
#include "layers/row_slice.h"
#include "runtime/memory_plan.h"

namespace cnn::bench {
namespace {

using Spec = std::optional<KernelSpec>;

bool is_half(DataType type) { return type == DataType::f16 || type == DataType::bf16; }

void keep_pitches(std::vector<TensorDesc>& answers, const std::vector<TensorDesc>& request) {
  for (std::size_t i = 0; i < answers.size(); ++i) {
    layers::keep_pitch(answers[i], request[i]);
  }
}

// A ReLU mask has one byte for eight channels.
bool has_gate_bytes(const TensorDesc& image) { return image.shape[1] % 8 == 0; }

Spec norm(const layers::BatchNorm& op, const Signature& request) {
  if (op.attributes.mask && !has_gate_bytes(request.in[0])) {
    return std::nullopt;
  }
  KernelSpec spec = layers::in_nhwc(request);
  layers::keep_pitch(spec.out[0], request.out[0]);
  return spec;
}

Spec norm_gradient(const layers::BatchNormBackward& op, const Signature& request) {
  if (op.attributes.mask && !has_gate_bytes(request.in[0])) {
    return std::nullopt;
  }
  KernelSpec spec = layers::in_nhwc(request);
  layers::keep_pitch(spec.in[op.index_of_dy()], request.in[op.index_of_dy()]);
  return spec;
}

// Keeps the requested pitch of read operands, or of written ones.
template <class Op>
Spec reads_apart(const Op& /*op*/, const Signature& request) {
  KernelSpec spec = layers::in_nhwc(request);
  keep_pitches(spec.in, request.in);
  return spec;
}
template <class Op>
Spec writes_apart(const Op& /*op*/, const Signature& request) {
  KernelSpec spec = layers::in_nhwc(request);
  keep_pitches(spec.out, request.out);
  return spec;
}

template <class Op>
Spec copies_apart(const Op& /*op*/, const Signature& request) {
  KernelSpec spec = layers::in_nhwc(request);
  keep_pitches(spec.in, request.in);
  keep_pitches(spec.out, request.out);
  return spec;
}

// Counts bytes between passes of a node: one pass writes them and the next reads them.
void pass_on(KernelSpec& spec, std::size_t bytes, bool in_workspace) {
  spec.extra_traffic += 2 * bytes;
  spec.workspace += in_workspace ? bytes : 0;
}

// Three 16-bit channels per pixel do not fill a vector load, so that the image and the filters are
// padded first.
void pad_image(KernelSpec& spec, const TensorDesc& w, std::int64_t channels) {
  if (!is_half(spec.in[0].type) || spec.in[0].shape[1] != 3) {
    return;
  }
  TensorDesc filters = w;
  filters.type = spec.in[0].type;
  for (TensorDesc padded : {spec.in[0], filters}) {
    padded.shape[1] = channels;
    pass_on(spec, padded.bytes(), true);
  }
}

// Weights, and a bias that the engine adds, have the images' type. An engine adds a bias, with or
// without a ReLU, and nothing else.
Spec convolution(const layers::Conv2d& op, const Signature& request) {
  KernelSpec spec = layers::in_nhwc(request);
  layers::keep_pitch(spec.in[0], request.in[0]);
  layers::keep_pitch(spec.out[0], request.out[0]);
  const layers::ConvAttributes& a = op.attributes;
  const DataType type = spec.in[0].type;
  spec.in[1].type = type;
  if (a.bias) {
    spec.in[2].type = a.residual ? DataType::f32 : type;
  }
  if (a.residual || (a.relu && !a.bias)) {
    pass_on(spec, spec.out[0].bytes(), false);
  }
  pad_image(spec, spec.in[1], type == DataType::f16 ? 4 : 8);
  return spec;
}

Spec data_gradient(const layers::Conv2dBackwardData& /*op*/, const Signature& request) {
  KernelSpec spec = layers::in_nhwc(request);
  layers::keep_pitch(spec.in[0], request.in[0]);
  layers::keep_pitch(spec.out[0], request.out[0]);
  spec.in[1].type = spec.in[0].type;
  return spec;
}

// An engine writes it in the images' type, and a conversion widens it.
Spec weight_gradient(const layers::Conv2dBackwardWeights& /*op*/, const Signature& request) {
  KernelSpec spec = layers::in_nhwc(request);
  keep_pitches(spec.in, request.in);
  if (is_half(spec.in[0].type) && spec.in[0].shape[1] != 3) {
    pass_on(spec, spec.out[0].bytes() / 2, true);
  }
  pad_image(spec, spec.out[0], 8);
  return spec;
}

constexpr std::size_t product_workspace = std::size_t{32} << 20U;  // of every cuBLAS product

template <class Op>
Spec product(const Op& /*op*/, const Signature& request) {
  KernelSpec spec = layers::in_nhwc(request);
  for (TensorDesc& desc : spec.in) {
    desc.type = spec.in[0].type;
  }
  spec.workspace = product_workspace;
  return spec;
}

Spec convert(const layers::Convert& /*op*/, const Signature& request) {
  return KernelSpec{.in = request.in, .out = request.out};
}

Spec fold(const layers::FoldBatchNorm& /*op*/, const Signature& request) {
  KernelSpec spec = layers::in_nhwc(request);
  for (TensorDesc& desc : spec.in) {
    desc.type = DataType::f32;  // the master weights
  }
  return spec;
}

Spec update(const layers::Update& op, const Signature& request) {
  return layers::like_parameters(op, request);
}

// The workspace holds its terms.
Spec window_gradient(const layers::WithinLrnBackward& /*op*/, const Signature& request) {
  return layers::in_nhwc(request, aligned(request.in[0].shape.elements() * sizeof(float)));
}

template <class... Ops>
bool is_any_of(const Op& op) {
  return ((dynamic_cast<const Ops*>(&op) != nullptr) || ...);
}

// All other ops, except those that only cuDNN's engines compute, and norms that their row rejected.
Spec other(const Op& op, const Signature& request) {
  using namespace layers;
  const bool refused = is_any_of<FusedConv, FusedConvBackwardWeights, ConvBackwardDataNorm,
                                 BatchNorm, BatchNormBackward>(op);
  return refused ? std::nullopt : Spec(layers::in_nhwc(request));
}

std::unique_ptr<Kernel> none(const Op& /*op*/, const Signature& /*signature*/) { return nullptr; }

template <class Op>
void add(KernelTable& table, Spec (*describe)(const Op&, const Signature&), Provider by) {
  table.add<Op>(describe, none, by);
}

Spec exchange(const layers::AllReduce& /*op*/, const Signature& request) {
  return KernelSpec{.in = request.in, .out = request.in};
}

}  // namespace

void add_assumed_exchange(KernelTable& table) {
  add<layers::AllReduce>(table, exchange, Provider::own);
}

void add_assumed_kernels(KernelTable& table) {
  using namespace layers;
  add<BatchNorm>(table, norm, Provider::own);
  add<BatchNormBackward>(table, norm_gradient, Provider::own);
  add<BatchNormInference>(table, writes_apart<BatchNormInference>, Provider::own);
  add<ReluBackward>(table, reads_apart<ReluBackward>, Provider::own);
  add<Concat>(table, reads_apart<Concat>, Provider::own);
  add<Split>(table, writes_apart<Split>, Provider::own);
  add<MaxPool>(table, writes_apart<MaxPool>, Provider::own);
  add<AveragePool>(table, writes_apart<AveragePool>, Provider::own);
  add<MaxPoolBackward>(table, reads_apart<MaxPoolBackward>, Provider::own);
  add<AveragePoolBackward>(table, reads_apart<AveragePoolBackward>, Provider::own);
  add<SliceRows>(table, copies_apart<SliceRows>, Provider::own);
  add<SliceRowsBackward>(table, copies_apart<SliceRowsBackward>, Provider::own);
  add<ConcatRows>(table, copies_apart<ConcatRows>, Provider::own);
  add<FoldBatchNorm>(table, fold, Provider::own);
  add<Convert>(table, convert, Provider::own);
  add<WithinLrnBackward>(table, window_gradient, Provider::own);
  add<Update>(table, update, Provider::own);
  add<Conv2d>(table, convolution, Provider::cudnn);
  add<Conv2dBackwardData>(table, data_gradient, Provider::cudnn);
  add<Conv2dBackwardWeights>(table, weight_gradient, Provider::cudnn);
  add<Dense>(table, product<Dense>, Provider::cublas);
  add<DenseBackwardData>(table, product<DenseBackwardData>, Provider::cublas);
  add<DenseBackwardWeights>(table, product<DenseBackwardWeights>, Provider::cublas);
  table.otherwise(other, none);
}

}  // namespace cnn::bench
