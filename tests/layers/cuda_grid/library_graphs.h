#pragma once

#include <cstdint>
#include <vector>

#include "layers/cuda/conv_graph.h"
#include "layers/cuda/fused_graph.h"
#include "layers/cuda/operation_graph.h"

// Graphs of one convolution, which tests give to a library.
namespace cnn::tests {

using Operations = std::vector<layers::cuda::OperationGraph::Operation>;

inline constexpr layers::Window same_3x3{
    .kernel_h = 3, .kernel_w = 3, .pad_top = 1, .pad_bottom = 1, .pad_left = 1, .pad_right = 1};
inline const Shape x_shape{8, 4, 10, 12}, w_shape{16, 4, 3, 3}, y_shape{8, 16, 10, 12};

inline layers::cuda::ConvGraph conv(layers::cuda::Direction direction) {
  return {.direction = direction,
          .type = DataType::f16,
          .x = x_shape,
          .w = w_shape,
          .y = y_shape,
          .window = same_3x3};
}
inline layers::cuda::FusedGraph with_prologue(layers::cuda::Direction direction) {
  return {.conv = conv(direction),
          .prologue = true,
          .statistics = direction == layers::cuda::Direction::forward};
}
inline layers::cuda::FusedGraph with_norm() {
  return {.conv = conv(layers::cuda::Direction::backward_data), .norm = true};
}

inline Operations of(const layers::cuda::OperationGraph& graph) {
  return {graph.operations().begin(), graph.operations().end()};
}

}  // namespace cnn::tests
