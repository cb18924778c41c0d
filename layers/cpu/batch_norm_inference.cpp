#include <algorithm>

#include "layers/batch_norm.h"
#include "layers/cpu/batch_norm_parts.h"
#include "layers/cpu/own_kernel.h"
#include "layers/cpu/rows.h"

namespace cnn::layers::cpu {

namespace {

// in: x, [gamma], beta, m, v, [residual]. out: y.
class Inference {
 public:
  Inference(const BatchNormAttributes& a, const TensorDesc& x, const Loops& loops)
      : attributes_(a), x_(x), chunks_(x), loops_(&loops_of(loops, x.type)) {}

  std::size_t workspace() const {
    BumpAllocator allocator;
    const Factors factors(allocator, chunks_.blocks.padded_channels());
    return allocator.bytes();
  }

  void operator()(const Operands& operands) const {
    BumpAllocator allocator(operands.workspace);
    const Factors factors(allocator, chunks_.blocks.padded_channels());
    factors.set(vectors_among(operands.in, attributes_.scale), attributes_.epsilon, 0, x_.shape[1],
                chunks_.blocks.padded_channels());
    const bool stream = is_streamed(operands, operands.out[0]);
    chunks_.each_run_in_parallel({0, chunks_.blocks.groups}, false, [&](const Run& run) {
      normalise(operands, factors, stream, run);
    });
  }

 private:
  void normalise(const Operands& operands, const Factors& factors, bool stream,
                 const Run& run) const {
    const bool residual = attributes_.residual;
    const std::int64_t channel = run.group * chunks_.blocks.columns;
    loops_->normalise({.x = at(operands.in[0], run.offset),
                       .residual = residual ? at(operands.in.back(), run.offset) : nullptr,
                       .y = at(operands.out[0], run.offset),
                       .mean = factors.mean + channel,
                       .scale = factors.scale + channel,
                       .scale_rest = factors.scale_rest + channel,
                       .shift = factors.shift + channel,
                       .rows = run.rows,
                       .columns = chunks_.blocks.columns,
                       .relu = attributes_.relu,
                       .limit = attributes_.limit,
                       .stream = stream});
  }

  BatchNormAttributes attributes_;
  TensorDesc x_;
  Chunks chunks_;
  const TypedLoops* loops_;
};

// Weights are f32 and row-major here: a later conversion packs them for a convolution.
void fold(const FoldBatchNorm& op, const Operands& operands) {
  const NormOperandIndices place(op.scale);
  const auto vector = [&](std::size_t i) { return operands.in[i].as<float>(); };
  const auto outputs = static_cast<std::int64_t>(operands.out[1].as<float>().size());
  const std::int64_t each = operands.in[0].desc.shape.elements() / outputs;
  const auto weights = operands.in[0].as<float>();
  const auto folded = operands.out[0].as<float>();
  parallel_for(outputs, elements_per_thread / each + 1, [&](std::int64_t begin, std::int64_t end) {
    for (auto o = static_cast<std::size_t>(begin); o < static_cast<std::size_t>(end); ++o) {
      const double gamma = op.scale ? static_cast<double>(vector(place.gamma)[o]) : 1;
      const double s = gamma * inverse_deviation(vector(place.variance)[o], op.epsilon);
      const double bias = op.bias ? static_cast<double>(operands.in.back().as<float>()[o]) : 0;
      const auto size = static_cast<std::size_t>(each);
      std::ranges::transform(weights.subspan(o * size, size),
                             folded.subspan(o * size, size).begin(),
                             [s](float w) { return static_cast<float>(s * w); });
      operands.out[1].as<float>()[o] = static_cast<float>(
          (bias - static_cast<double>(vector(place.mean)[o])) * s + vector(place.beta)[o]);
    }
  });
}

}  // namespace

void add_batch_norm_inference_rows(KernelTable& table, const Loops& loops) {
  table.add<BatchNormInference>(
      [&loops](const BatchNormInference& op,
               const Signature& request) -> std::optional<KernelSpec> {
        if (!is_vectorised(request.in[0].type)) {
          return std::nullopt;
        }
        KernelSpec spec = in_layout(request, channels_together(request));
        spec.workspace = Inference(op.attributes, spec.in[0], loops).workspace();
        return spec;
      },
      [&loops](const BatchNormInference& op, const Signature& s) {
        return own_kernel(Inference(op.attributes, s.in[0], loops));
      });
  table.add<FoldBatchNorm>(
      [](const FoldBatchNorm&, const Signature& request) -> std::optional<KernelSpec> {
        return in_layout(request, Layout::nchw);
      },
      [](const FoldBatchNorm& op, const Signature&) {
        return own_kernel([op](const Operands& operands) { fold(op, operands); });
      });
}

}  // namespace cnn::layers::cpu
