#include "layers/cuda/fused_graph.h"

#include <cstdint>
#include <gtest/gtest.h>
#include <vector>

#include "tests/layers/cuda_grid/library_graphs.h"

namespace cnn::tests {
namespace {

using layers::cuda::Direction;
using layers::cuda::OperationGraph;
using Function = OperationGraph::Function;
using Elementwise = OperationGraph::Elementwise;

OperationGraph::Tensor image(const Shape& shape) { return {.shape = shape, .type = DataType::f16}; }
OperationGraph::Tensor vector(std::int64_t channels, DataType type) {
  return {.shape = {1, channels, 1, 1}, .type = type};
}

std::vector<OperationGraph::Tensor> memory_of(const OperationGraph& graph) {
  std::vector<OperationGraph::Tensor> result;
  for (const OperationGraph::Id id : graph.in_memory()) {
    result.push_back(graph.tensor(id));
  }
  return result;
}

// In memory: x 1, w 2, y 3, scale 4, shift 5.
TEST(FusedGraph, ScalesBeforeItShiftsInAPrologue) {
  for (const Direction direction : {Direction::forward, Direction::backward_weights}) {
    const OperationGraph graph = operations_of(with_prologue(direction));
    const Operations all = of(graph);
    ASSERT_GE(all.size(), 4U);
    EXPECT_EQ(all[0], OperationGraph::Operation(Elementwise{Function::multiply, 1, 4, 6}));
    EXPECT_EQ(all[1], OperationGraph::Operation(Elementwise{Function::add, 6, 5, 7}));
    EXPECT_EQ(all[2], OperationGraph::Operation(Elementwise{Function::relu, 7, 0, 8}));
    EXPECT_EQ(all[3],
              OperationGraph::Operation(OperationGraph::Convolution{direction, same_3x3, 8, 2, 3}));
  }
}

TEST(FusedGraph, HasItsMemoryInThePromisedOrder) {
  EXPECT_EQ(memory_of(operations_of(with_prologue(Direction::forward))),
            (std::vector{image(x_shape), image(w_shape), image(y_shape), vector(4, DataType::f16),
                         vector(4, DataType::f16), vector(16, DataType::f32),
                         vector(16, DataType::f32)}));
  const OperationGraph::Tensor coefficient = vector(4, DataType::f32);
  std::vector expected{image(x_shape), image(w_shape), image(y_shape)};
  expected.insert(expected.end(), 4, coefficient);
  expected.push_back(image(x_shape));
  expected.insert(expected.end(), 5, coefficient);
  EXPECT_EQ(memory_of(operations_of(with_norm())), expected);
}

TEST(FusedGraph, SumsUpTheOutputOfTheConvolution) {
  const Operations all = of(operations_of(with_prologue(Direction::forward)));
  ASSERT_EQ(all.size(), 5U);
  EXPECT_EQ(all[4], OperationGraph::Operation(OperationGraph::Statistics{3, 9, 10}));
}

// In memory: x 1, w 2, dy 3, mean 4, 1 / deviation 5, gamma 6, beta 7, g 8, then five results.
TEST(FusedGraph, GoesBackThroughTheReluOfANormThatItComputesAnew) {
  EXPECT_EQ(of(operations_of(with_norm())),
            (Operations{
                OperationGraph::Convolution{Direction::backward_data, same_3x3, 14, 2, 3},
                Elementwise{Function::subtract, 1, 4, 15},
                Elementwise{Function::multiply, 15, 5, 16},
                Elementwise{Function::multiply, 16, 6, 17},
                Elementwise{Function::add, 17, 7, 18},
                Elementwise{Function::relu_backward, 14, 18, 8},
                OperationGraph::NormBackward{.x = 1,
                                             .dy = 8,
                                             .mean = 4,
                                             .inverse_deviation = 5,
                                             .gamma = 6,
                                             .dgamma = 9,
                                             .dbeta = 10,
                                             .a = 11,
                                             .b = 12,
                                             .c = 13},
            }));
}

TEST(FusedGraph, IsNamedByItsParts) {
  layers::cuda::FusedGraph graph{.conv = {.direction = layers::cuda::Direction::forward,
                                          .type = DataType::f16,
                                          .x = {8, 4, 10, 12},
                                          .w = {16, 4, 3, 5},
                                          .y = {8, 16, 10, 12},
                                          .window = {}},
                                 .prologue = true,
                                 .statistics = true};
  EXPECT_EQ(key_of(graph),
            "fused forward f16 x 8x4x10x12 w 16x4x3x5 stride 1x1 pad 0,0,0,0 prologue statistics");
  graph.prologue = graph.statistics = false;
  graph.norm = true;
  EXPECT_EQ(key_of(graph), "fused forward f16 x 8x4x10x12 w 16x4x3x5 stride 1x1 pad 0,0,0,0 norm");
}

}  // namespace
}  // namespace cnn::tests
