#include "layers/cuda/conv_graph.h"

#include <gtest/gtest.h>

namespace cnn::tests {
namespace {

using layers::cuda::ConvGraph;
using layers::cuda::Direction;

TEST(ConvGraph, IsNamedByAllThatAnEngineDependsOn) {
  ConvGraph graph{.direction = Direction::forward,
                  .type = DataType::f16,
                  .x = {8, 4, 10, 12},
                  .w = {16, 4, 3, 5},
                  .y = {8, 16, 5, 6},
                  .window = {.kernel_h = 3,
                             .kernel_w = 5,
                             .stride_h = 2,
                             .stride_w = 2,
                             .pad_top = 0,
                             .pad_bottom = 1,
                             .pad_left = 1,
                             .pad_right = 2},
                  .bias = true};
  EXPECT_EQ(key_of(graph), "forward f16 x 8x4x10x12 w 16x4x3x5 stride 2x2 pad 0,1,1,2 bias");
  graph.relu = true;
  EXPECT_EQ(key_of(graph), "forward f16 x 8x4x10x12 w 16x4x3x5 stride 2x2 pad 0,1,1,2 bias relu");
  graph.bias = graph.relu = false;
  graph.direction = Direction::backward_weights;
  EXPECT_EQ(key_of(graph), "backward_weights f16 x 8x4x10x12 w 16x4x3x5 stride 2x2 pad 0,1,1,2");
  graph.x_pitch = 24;
  graph.y_pitch = 48;
  EXPECT_EQ(key_of(graph),
            "backward_weights f16 x 8x4x10x12 w 16x4x3x5 stride 2x2 pad 0,1,1,2 pitch of x 24 "
            "pitch of y 48");
}

}  // namespace
}  // namespace cnn::tests
