#include "layers/cuda/conv_graph.h"

#include <string_view>

namespace cnn::layers::cuda {
namespace {

std::string_view text_of(Direction direction) {
  switch (direction) {
    case Direction::backward_data:
      return "backward_data";
    case Direction::backward_weights:
      return "backward_weights";
    case Direction::forward:
      break;
  }
  return "forward";
}

std::string text_of(const Shape& shape) {
  std::string text;
  for (const std::int64_t size : shape) {
    text += (text.empty() ? "" : "x") + std::to_string(size);
  }
  return text;
}

}  // namespace

std::string key_of(const ConvGraph& g) {
  const Window& w = g.window;
  std::string key(text_of(g.direction));
  key += " " + std::string(name_of(g.type)) + " x " + text_of(g.x) + " w " + text_of(g.w);
  key += " stride " + std::to_string(w.stride_h) + "x" + std::to_string(w.stride_w) + " pad ";
  key += std::to_string(w.pad_top) + "," + std::to_string(w.pad_bottom) + "," +
         std::to_string(w.pad_left) + "," + std::to_string(w.pad_right);
  const auto pitch = [](std::string_view name, std::int64_t elements) {
    return elements == 0 ? "" : " pitch of " + std::string(name) + " " + std::to_string(elements);
  };
  key += pitch("x", g.x_pitch) + pitch("y", g.y_pitch);
  return key + (g.bias ? " bias" : "") + (g.relu ? " relu" : "");
}

OperationGraph operations_of(const ConvGraph& g) {
  using Function = OperationGraph::Function;
  OperationGraph graph;
  const OperationGraph::Id x = graph.stored(g.x, g.type, g.x_pitch);
  const OperationGraph::Id w = graph.stored(g.w, g.type);
  const OperationGraph::Id bias = g.bias ? graph.stored({1, g.y[1], 1, 1}, g.type) : 0;
  const OperationGraph::Id y = graph.stored(g.y, g.type, g.y_pitch);
  OperationGraph::Id value = g.bias || g.relu ? graph.inner(g.y) : y;
  graph.add(OperationGraph::Convolution{
      .direction = g.direction, .window = g.window, .x = x, .w = w, .y = value});
  if (g.bias) {
    const OperationGraph::Id sum = g.relu ? graph.inner(g.y) : y;
    graph.add(
        OperationGraph::Elementwise{.function = Function::add, .a = value, .b = bias, .out = sum});
    value = sum;
  }
  if (g.relu) {
    graph.add(OperationGraph::Elementwise{.function = Function::relu, .a = value, .out = y});
  }
  return graph;
}

}  // namespace cnn::layers::cuda
