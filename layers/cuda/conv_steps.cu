#include <utility>

#include "layers/cuda/conv_parts.h"
#include "layers/cuda/conv_steps.h"
#include "layers/cuda/engine_workspace.h"
#include "layers/cuda/own_kernel.h"

namespace cnn::layers::cuda {

namespace {

constexpr int image_channels = 3;

// Returns the number of channels to pad x and w to. The 6-byte pixels of 16-bit RGB images allow no
// vectorised loads: cuDNN would pad them itself, with a larger workspace and a change of layout.
// The forward engines for f16 accept pixels of 8 bytes, that is 4 channels; all other engines
// need 16.
std::int64_t padded_channels(Direction direction, DataType type, std::int64_t channels) {
  if (channels != image_channels || type == DataType::f32) {
    return channels;
  }
  return direction == Direction::forward && type == DataType::f16 ? 4 : 8;
}

std::int64_t rows_of(const Shape& shape) { return shape[0] * shape[2] * shape[3]; }

std::int64_t bytes_of(const Shape& shape, DataType type) {
  return shape.elements() * static_cast<std::int64_t>(size_of(type));
}

// The parts of a node's workspace; nullptr: the node does not need this part.
struct WorkspaceParts {
  std::byte* x = nullptr;       // padded copy of x
  std::byte* w = nullptr;       // padded copy of w, or the 16-bit dw before its conversion to f32
  std::byte* engine = nullptr;  // the engine's own workspace
  float* partial = nullptr;     // partial sums of the bias gradient
};

// Allocates the parts. With an allocator that only counts, the result has no addresses.
WorkspaceParts allocate_parts(const ConvSteps& s, BumpAllocator& allocator) {
  const ConvGraph& g = s.graph;
  const bool weights = g.direction == Direction::backward_weights;
  WorkspaceParts parts;
  parts.engine = aligned_for_engine(
      allocator.take<std::byte>(static_cast<std::int64_t>(planned_for_engine(s.engine_bytes))));
  if (s.is_padded()) {
    parts.x = allocator.take<std::byte>(bytes_of(g.x, g.type));
  }
  if (s.is_padded() || (weights && g.type != DataType::f32)) {
    parts.w = allocator.take<std::byte>(bytes_of(g.w, g.type));
  }
  if (weights && s.attributes.bias) {
    const std::size_t bytes = sum_rows_workspace(rows_of(g.y), static_cast<int>(g.y[1]));
    parts.partial = allocator.take<float>(static_cast<std::int64_t>(bytes / sizeof(float)));
  }
  return parts;
}

TensorDesc image_like(const Shape& shape, DataType type) {
  return {.shape = shape, .type = type, .layout = Layout::nhwc};
}

// Returns the description of an image for the engine. It keeps the requested pitch if the requested
// type is the engine's.
TensorDesc image_of(const TensorDesc& request, DataType type) {
  TensorDesc image = image_like(request.shape, type);
  if (request.type == type) {
    keep_pitch(image, request);
  }
  return image;
}

// The operands of a convolution under the names of the forward pass, whatever the direction.
struct ConvTensors {
  TensorDesc x, w, y;
};

// Returns the part of the steps that all directions share: the engine's graph with padded channels.
// Returns nothing if the type is not a floating-point type.
std::optional<ConvSteps> start(Direction direction, const ConvAttributes& attributes, DataType type,
                               const ConvTensors& tensors) {
  if (!is_float(type)) {
    return std::nullopt;
  }
  const Shape& x = tensors.x.shape;
  ConvSteps s;
  s.attributes = attributes;
  s.channels = static_cast<int>(x[1]);
  s.graph = {.direction = direction,
             .type = type,
             .x = x,
             .w = tensors.w.shape,
             .y = tensors.y.shape,
             .window = attributes.window};
  if (!attributes.depthwise && direction != Direction::backward_data) {
    s.graph.x[1] = padded_channels(direction, type, x[1]);
    s.graph.w[1] = s.graph.x[1];
  }
  if (!s.is_padded()) {
    s.graph.x_pitch = image_of(tensors.x, type).pitch;
  }
  s.graph.y_pitch = image_of(tensors.y, type).pitch;
  return s;
}

// Returns the memory traffic between our kernels and the engine in bytes: every intermediate tensor
// is written once and read once. The second read of dy for the bias gradient is not included,
// because Op::reread_bytes counts it for every backend.
std::size_t bytes_between_steps(const ConvSteps& s) {
  const ConvGraph& g = s.graph;
  const bool weights = g.direction == Direction::backward_weights;
  std::int64_t bytes = 0;
  if (s.is_padded()) {
    bytes += bytes_of(g.x, g.type);
  }
  if (s.is_padded() || (weights && g.type != DataType::f32)) {
    bytes += bytes_of(g.w, g.type);
  }
  if (s.epilogue) {
    bytes += bytes_of(g.y, g.type);
  }
  return 2 * static_cast<std::size_t>(bytes);
}

// Returns the steps with their workspace and traffic, or nothing if there is no engine.
std::optional<ConvSteps> complete(ConvSteps s, const FindWorkspace& find) {
  const std::optional<std::size_t> engine = find(s.graph);
  if (!engine) {
    return std::nullopt;
  }
  s.engine_bytes = *engine;
  BumpAllocator allocator;
  allocate_parts(s, allocator);
  s.spec.workspace = allocator.bytes();
  s.spec.extra_traffic = bytes_between_steps(s);
  return s;
}

// The kernel of a convolution node: runs the steps of its direction in order.
class ConvKernel final : public Kernel {
 public:
  ConvKernel(ConvSteps steps, std::unique_ptr<ConvEngine> engine)
      : s_(std::move(steps)), engine_(std::move(engine)) {}

  void run(Stream& stream, const Operands& operands) override {
    BumpAllocator allocator(operands.workspace);
    const WorkspaceParts parts = allocate_parts(s_, allocator);
    switch (s_.graph.direction) {
      case Direction::forward:
        return forward(stream, operands, parts);
      case Direction::backward_data:
        return engine_->run(stream, {.x = operands.out[0].data,
                                     .w = operands.in[1].data,
                                     .y = operands.in[0].data,
                                     .workspace = parts.engine});
      case Direction::backward_weights:
        return backward_weights(stream, operands, parts);
    }
  }

 private:
  std::byte* padded(Stream& stream, std::byte* from, std::byte* to, std::int64_t rows) const {
    if (!s_.is_padded()) {
      return from;
    }
    pad_rows(stream, {.from = from,
                      .to = to,
                      .rows = rows,
                      .channels = s_.channels,
                      .padded = static_cast<int>(s_.graph.x[1])});
    return to;
  }

  void forward(Stream& stream, const Operands& operands, const WorkspaceParts& parts) const {
    const ConvGraph& g = s_.graph;
    std::byte* const y = operands.out[0].data;
    const bool bias = s_.attributes.bias;
    engine_->run(stream, {.x = padded(stream, operands.in[0].data, parts.x, rows_of(g.x)),
                          .w = padded(stream, operands.in[1].data, parts.w, rows_of(g.w)),
                          .bias = g.bias ? operands.in[2].data : nullptr,
                          .y = y,
                          .workspace = parts.engine});
    if (s_.epilogue) {
      run_epilogue(stream, {.y = y,
                            .bias = bias ? data_of<float>(operands.in[2]) : nullptr,
                            .residual = s_.attributes.residual ? operands.in.back().data : nullptr,
                            .relu = s_.attributes.relu,
                            .type = g.type,
                            .rows = rows_of(g.y),
                            .channels = static_cast<int>(g.y[1]),
                            .pitch = pitch_of(operands.out[0].desc)});
    }
  }

  void backward_weights(Stream& stream, const Operands& operands,
                        const WorkspaceParts& parts) const {
    const ConvGraph& g = s_.graph;
    const bool narrow = g.type != DataType::f32;
    std::byte* const dy = operands.in[1].data;
    engine_->run(stream, {.x = padded(stream, operands.in[0].data, parts.x, rows_of(g.x)),
                          .w = narrow ? parts.w : operands.out[0].data,
                          .y = dy,
                          .workspace = parts.engine});
    if (narrow) {
      widen_rows(stream, {.from = parts.w,
                          .to = data_of<float>(operands.out[0]),
                          .type = g.type,
                          .rows = rows_of(g.w),
                          .channels = static_cast<int>(operands.out[0].desc.shape[1]),
                          .padded = static_cast<int>(g.w[1])});
    }
    if (s_.attributes.bias) {
      sum_rows(stream, {.from = dy,
                        .type = g.type,
                        .rows = rows_of(g.y),
                        .columns = static_cast<int>(g.y[1]),
                        .pitch = pitch_of(operands.in[1].desc),
                        .sums = data_of<float>(operands.out[1]),
                        .partial = parts.partial});
    }
  }

  ConvSteps s_;
  std::unique_ptr<ConvEngine> engine_;
};

}  // namespace

TensorDesc ConvSteps::x_image() const {
  TensorDesc image = image_like(graph.x, graph.type);
  image.shape[1] = channels;
  image.pitch = graph.x_pitch;
  return image;
}

TensorDesc ConvSteps::y_image() const {
  TensorDesc image = image_like(graph.y, graph.type);
  image.pitch = graph.y_pitch;
  return image;
}

std::optional<ConvSteps> steps_of(const Conv2d& op, const Signature& request,
                                  const FindWorkspace& find) {
  const ConvAttributes& a = op.attributes;
  const DataType type = request.in[0].type;
  const TensorDesc &w = request.in[1], &y = request.out[0];
  std::optional<ConvSteps> s = start(Direction::forward, a, type, {request.in[0], w, y});
  if (!s) {
    return std::nullopt;
  }
  s->spec.in = {s->x_image(), image_like(w.shape, type)};
  if (a.bias) {
    s->spec.in.push_back({.shape = request.in[2].shape, .type = type});
  }
  if (a.residual) {
    s->spec.in.push_back(image_like(y.shape, type));
  }
  s->spec.out = {s->y_image()};
  // The epilogue of an engine supports a bias and a bias with ReLU only.
  if (a.bias && !a.residual) {
    s->graph.bias = true;
    s->graph.relu = a.relu;
    if (std::optional<ConvSteps> whole = complete(*s, find)) {
      return whole;
    }
    s->graph.bias = s->graph.relu = false;
  }
  s->epilogue = a.bias || a.residual || a.relu;
  if (a.bias) {
    s->spec.in[2].type = DataType::f32;
  }
  return complete(*std::move(s), find);
}

std::optional<ConvSteps> steps_of(const Conv2dBackwardData& op, const Signature& request,
                                  const FindWorkspace& find) {
  const DataType type = request.in[0].type;
  const TensorDesc &dy = request.in[0], &w = request.in[1];
  std::optional<ConvSteps> s =
      start(Direction::backward_data, op.attributes, type, {request.out[0], w, dy});
  if (!s) {
    return std::nullopt;
  }
  s->spec.in = {s->y_image(), image_like(w.shape, type)};
  s->spec.out = {s->x_image()};
  return complete(*std::move(s), find);
}

std::optional<ConvSteps> steps_of(const Conv2dBackwardWeights& op, const Signature& request,
                                  const FindWorkspace& find) {
  const DataType type = request.in[0].type;
  std::optional<ConvSteps> s = start(Direction::backward_weights, op.attributes, type,
                                     {request.in[0], image_like(op.w_shape, type), request.in[1]});
  if (!s) {
    return std::nullopt;
  }
  s->spec.in = {s->x_image(), s->y_image()};
  s->spec.out = {image_like(op.w_shape, DataType::f32)};
  if (op.attributes.bias) {
    s->spec.out.push_back({.shape = {op.w_shape[0]}});
  }
  return complete(*std::move(s), find);
}

std::unique_ptr<Kernel> make_kernel(ConvSteps steps, std::unique_ptr<ConvEngine> engine) {
  return std::make_unique<ConvKernel>(std::move(steps), std::move(engine));
}

}  // namespace cnn::layers::cuda
