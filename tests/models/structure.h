#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "layers/conv.h"
#include "layers/pool.h"
#include "models/catalog.h"
#include "runtime/graph.h"

// The layers of networks as short lines, which tests compare with the tables of the papers.
namespace cnn::tests {

// Returns " 11x11/4": height and width of the kernel, then the stride if it is above 1.
inline std::string text_of(const layers::Window& window) {
  return " " + std::to_string(window.kernel_h) + "x" + std::to_string(window.kernel_w) +
         (window.stride_h > 1 ? "/" + std::to_string(window.stride_h) : "");
}

// Returns " 64x55": channels and height of the output, or only the channels of a vector.
inline std::string text_of(const Shape& shape) {
  return " " + std::to_string(shape[1]) + (shape.rank() == 4 ? "x" + std::to_string(shape[2]) : "");
}

inline std::string line_of(const Graph& graph, const Node& node) {
  std::string line(node.op->name());
  if (const auto* conv = dynamic_cast<const layers::Conv2d*>(node.op.get())) {
    line = (conv->attributes.depthwise ? "depthwise" : "conv") + text_of(conv->attributes.window);
  } else if (const auto* max = dynamic_cast<const layers::MaxPool*>(node.op.get())) {
    line += text_of(max->window);
  } else if (const auto* average = dynamic_cast<const layers::AveragePool*>(node.op.get())) {
    line += text_of(average->window);
  }
  return line + text_of(graph.info(node.outputs[0]).desc.shape);
}

// Returns a line for each layer of a network for one image, without the last layer, such as
// "conv 11x11/4 64x55" (kernel, stride, output). Activations, batch norms and changes of shape are
// left out.
inline std::vector<std::string> layers_of(std::string_view data_set, std::string_view name) {
  constexpr std::array<std::string_view, 4> left_out{"relu", "batch_norm", "moving_average",
                                                     "flatten"};
  const models::Model& model = models::find(data_set, name);
  Graph graph;
  model.build(
      graph.input("images", {.shape = {1, model.channels, model.image_size, model.image_size}}));
  std::vector<std::string> lines;
  for (const Node& node : graph.nodes()) {
    if (std::ranges::find(left_out, node.op->name()) == left_out.end()) {
      lines.push_back(line_of(graph, node));
    }
  }
  return lines;
}

// Returns those lines that begin with the word.
inline std::vector<std::string> starting_with(std::string_view word,
                                              const std::vector<std::string>& lines) {
  std::vector<std::string> found;
  std::ranges::copy_if(lines, std::back_inserter(found),
                       [&](const std::string& line) { return line.starts_with(word); });
  return found;
}

// Returns the lines from the first one, at most so many.
inline std::vector<std::string> first(std::size_t count, std::vector<std::string> lines) {
  lines.resize(std::min(count, lines.size()));
  return lines;
}

}  // namespace cnn::tests
