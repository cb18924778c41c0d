#include "layers/cuda/library/cudnn_conv.h"

namespace cnn::layers::cuda {
namespace {

constexpr std::int64_t id_x = 1, id_w = 2, id_y = 3, id_bias = 4;

}  // namespace

void build(const ConvGraph& g, OperationGraph& into) {
  const bool epilogue = g.bias || g.relu;
  std::int64_t next = id_bias + 1;
  const auto inner = [&] {
    into.tensor({.id = next, .shape = g.y, .type = DataType::f32, .inner = true});
    return next++;
  };
  into.tensor({.id = id_x, .shape = g.x, .type = g.type, .pitch = g.x_pitch});
  into.tensor({.id = id_w, .shape = g.w, .type = g.type});
  if (g.bias) {
    into.tensor({.id = id_bias, .shape = {1, g.y[1], 1, 1}, .type = g.type});
  }
  into.tensor({.id = id_y, .shape = g.y, .type = g.type, .pitch = g.y_pitch});
  std::int64_t value = epilogue ? inner() : id_y;
  into.convolution(
      {.direction = g.direction, .window = g.window, .x = id_x, .w = id_w, .y = value});
  if (g.bias) {
    const std::int64_t sum = g.relu ? inner() : id_y;
    into.add(value, id_bias, sum);
    value = sum;
  }
  if (g.relu) {
    into.relu(value, id_y);
  }
  into.finish();
}

}  // namespace cnn::layers::cuda
