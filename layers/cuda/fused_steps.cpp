#include "layers/cuda/fused_steps.h"

#include <array>
#include <utility>

#include "layers/cuda/conv_parts.h"
#include "layers/cuda/engine_workspace.h"
#include "runtime/memory_plan.h"

namespace cnn::layers::cuda {
namespace {

constexpr Source in(std::size_t index) { return {Source::From::in, index}; }
constexpr Source out(std::size_t index) { return {Source::From::out, index}; }
constexpr Source scratch(std::size_t offset) { return {Source::From::scratch, offset}; }

constexpr std::size_t max_tensors = 13;

TensorDesc image_like(const Shape& shape, DataType type) {
  return {.shape = shape, .type = type, .layout = Layout::nhwc};
}
TensorDesc vector_like(std::int64_t channels, DataType type = DataType::f32) {
  return {.shape = {channels}, .type = type};
}

// Returns whether cuDNN may have a fused engine for images of this type. All fused engines use
// tensor cores, so there is none for f32. cuDNN 9.19 has them for f16 only; later versions may add
// bf16.
bool is_fusible(const TensorDesc& image) { return size_of(image.type) == 2; }

// Returns the steps with their workspace, or nothing if there is no engine.
std::optional<FusedSteps> complete(FusedSteps steps, const FindFusedWorkspace& find) {
  const std::optional<std::size_t> engine = find(steps.graph);
  if (!engine) {
    return std::nullopt;
  }
  steps.spec.workspace = steps.scratch_bytes + planned_for_engine(*engine);
  return steps;
}

class FusedKernel final : public Kernel {
 public:
  FusedKernel(FusedSteps steps, std::unique_ptr<FusedEngine> engine)
      : s_(std::move(steps)), engine_(std::move(engine)) {}

  void run(Stream& stream, const Operands& operands) override {
    std::byte* const workspace = operands.workspace.data();
    std::array<void*, max_tensors> pointers{};
    for (std::size_t i = 0; i < s_.tensors.size(); ++i) {
      pointers.at(i) = address(s_.tensors[i], operands);
    }
    engine_->run(stream, std::span<void* const>(pointers).first(s_.tensors.size()),
                 aligned_for_engine(workspace + s_.scratch_bytes));
    if (s_.widen) {
      const Shape& w = s_.graph.conv.w;
      const auto channels = static_cast<int>(w[1]);
      widen_rows(stream, {.from = workspace,
                          .to = reinterpret_cast<float*>(operands.out[0].data),
                          .type = s_.graph.conv.type,
                          .rows = w[0] * w[2] * w[3],
                          .channels = channels,
                          .padded = channels});
    }
  }

 private:
  static std::byte* address(const Source& source, const Operands& operands) {
    switch (source.from) {
      case Source::From::in:
        return operands.in[source.index].data;
      case Source::From::out:
        return operands.out[source.index].data;
      case Source::From::scratch:
        break;
    }
    return operands.workspace.data() + source.index;
  }

  FusedSteps s_;
  std::unique_ptr<FusedEngine> engine_;
};

}  // namespace

std::optional<FusedSteps> steps_of(const FusedConv& op, const Signature& request,
                                   const FindFusedWorkspace& find) {
  const FusedConvAttributes& a = op.attributes;
  const Shape &x = request.in[0].shape, &w = request.in[1].shape, &y = request.out[0].shape;
  const DataType type = request.in[0].type;
  if (!is_fusible(request.in[0])) {
    return std::nullopt;
  }
  FusedSteps s;
  s.graph = {.conv = {.type = type, .x = x, .w = w, .y = y, .window = a.window},
             .prologue = a.prologue,
             .statistics = true};  // on Hopper no engine has a prologue without statistics
  s.spec.in = {image_like(x, type), image_like(w, type)};
  s.spec.out = {image_like(y, type)};
  s.tensors = {in(0), in(1), out(0)};
  if (a.prologue) {
    s.spec.in.insert(s.spec.in.end(), 2, vector_like(x[1], type));
    s.tensors.insert(s.tensors.end(), {in(2), in(3)});
  }
  if (a.statistics) {
    s.spec.out.insert(s.spec.out.end(), 2, vector_like(y[1]));
    s.tensors.insert(s.tensors.end(), {out(1), out(2)});
  } else {
    const std::size_t bytes = aligned(vector_like(y[1]).bytes());
    s.tensors.insert(s.tensors.end(), {scratch(0), scratch(bytes)});
    s.scratch_bytes = 2 * bytes;
  }
  return complete(std::move(s), find);
}

std::optional<FusedSteps> steps_of(const FusedConvBackwardWeights& op, const Signature& request,
                                   const FindFusedWorkspace& find) {
  const Shape &x = request.in[0].shape, &dy = request.in[3].shape;
  const DataType type = request.in[0].type;
  if (!is_fusible(request.in[0])) {
    return std::nullopt;
  }
  FusedSteps s;
  s.graph = {.conv = {.direction = Direction::backward_weights,
                      .type = type,
                      .x = x,
                      .w = op.w_shape,
                      .y = dy,
                      .window = op.window},
             .prologue = true};
  s.spec.in = {image_like(x, type), vector_like(x[1], type), vector_like(x[1], type),
               image_like(dy, type)};
  s.spec.out = {image_like(op.w_shape, DataType::f32)};
  s.tensors = {in(0), scratch(0), in(3), in(1), in(2)};
  const std::size_t narrow_bytes = image_like(op.w_shape, type).bytes();
  s.scratch_bytes = aligned(narrow_bytes);
  s.spec.extra_traffic = 2 * narrow_bytes;  // the engine writes it, the conversion reads it
  s.widen = true;
  return complete(std::move(s), find);
}

std::optional<FusedSteps> steps_of(const ConvBackwardDataNorm& op, const Signature& request,
                                   const FindFusedWorkspace& find) {
  const Shape &dy = request.in[0].shape, &w = request.in[1].shape, &x = request.in[2].shape;
  const DataType type = request.in[0].type;
  if (!is_fusible(request.in[0])) {
    return std::nullopt;
  }
  FusedSteps s;
  s.graph = {.conv = {.direction = Direction::backward_data,
                      .type = type,
                      .x = x,
                      .w = w,
                      .y = dy,
                      .window = op.window},
             .norm = true};
  s.spec.in = {image_like(dy, type), image_like(w, type), image_like(x, type)};
  s.spec.in.insert(s.spec.in.end(), 4, vector_like(x[1]));  // mean, r, gamma, beta
  s.spec.out = {image_like(x, type)};
  s.spec.out.insert(s.spec.out.end(), 5, vector_like(x[1]));  // dgamma, dbeta, A, B, C
  s.tensors = {in(2),  in(1),  in(0),  in(3),  in(4),  in(5), in(6),
               out(0), out(1), out(2), out(3), out(4), out(5)};
  return complete(std::move(s), find);
}

std::unique_ptr<Kernel> make_kernel(FusedSteps steps, std::unique_ptr<FusedEngine> engine) {
  return std::make_unique<FusedKernel>(std::move(steps), std::move(engine));
}

}  // namespace cnn::layers::cuda
