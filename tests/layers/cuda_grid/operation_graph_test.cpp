// Tests of OperationGraph: the tensors that each operation reads and writes.

#include "layers/cuda/operation_graph.h"

#include <gtest/gtest.h>
#include <set>
#include <variant>
#include <vector>

#include "layers/cuda/conv_graph.h"
#include "layers/cuda/fused_graph.h"
#include "runtime/error.h"

namespace cnn::tests {
namespace {

using layers::cuda::ConvGraph;
using layers::cuda::Direction;
using layers::cuda::FusedGraph;
using layers::cuda::OperationGraph;
using Function = OperationGraph::Function;
using Elementwise = OperationGraph::Elementwise;
using Operations = std::vector<OperationGraph::Operation>;

constexpr layers::Window same_3x3{
    .kernel_h = 3, .kernel_w = 3, .pad_top = 1, .pad_bottom = 1, .pad_left = 1, .pad_right = 1};
const Shape x_shape{8, 4, 10, 12}, w_shape{16, 4, 3, 3}, y_shape{8, 16, 10, 12};

ConvGraph conv(Direction direction) {
  return {.direction = direction,
          .type = DataType::f16,
          .x = x_shape,
          .w = w_shape,
          .y = y_shape,
          .window = same_3x3};
}
FusedGraph with_prologue(Direction direction) {
  return {.conv = conv(direction), .prologue = true, .statistics = direction == Direction::forward};
}
FusedGraph with_norm() { return {.conv = conv(Direction::backward_data), .norm = true}; }

Operations of(const OperationGraph& graph) {
  return {graph.operations().begin(), graph.operations().end()};
}
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

// In memory: x 1, w 2, bias 3, y 4.
TEST(ConvGraph, AddsItsBiasBeforeItsRelu) {
  ConvGraph graph = conv(Direction::forward);
  graph.bias = graph.relu = true;
  EXPECT_EQ(
      of(operations_of(graph)),
      (Operations{OperationGraph::Convolution{Direction::forward, same_3x3, 1, 2, 5},
                  Elementwise{Function::add, 5, 3, 6}, Elementwise{Function::relu, 6, 0, 4}}));
  graph.relu = false;
  EXPECT_EQ(of(operations_of(graph)),
            (Operations{OperationGraph::Convolution{Direction::forward, same_3x3, 1, 2, 5},
                        Elementwise{Function::add, 5, 3, 4}}));
}

TEST(ConvGraph, IsOneOperationWithoutABias) {
  for (const Direction direction :
       {Direction::forward, Direction::backward_data, Direction::backward_weights}) {
    EXPECT_EQ(of(operations_of(conv(direction))),
              Operations{(OperationGraph::Convolution{direction, same_3x3, 1, 2, 3})});
  }
}

TEST(OperationGraph, TakesNoOperationOnATensorThatItLacks) {
  OperationGraph graph;
  const OperationGraph::Id x = graph.stored(x_shape, DataType::f16);
  EXPECT_THROW(graph.add(Elementwise{Function::relu, x, 0, 2}), Error);
  EXPECT_THROW(graph.add(Elementwise{Function::add, x, 0, x}), Error);
  EXPECT_NO_THROW(graph.add(Elementwise{Function::relu, x, 0, x}));
}

TEST(OperationGraph, RefusesTensorsOfMoreElementsThanAnEngineCounts) {
  OperationGraph graph;
  EXPECT_NO_THROW(graph.stored({7394, 96, 55, 55}, DataType::f16));
  EXPECT_NO_THROW(graph.stored({1, 1, 1, (std::int64_t{1} << 31) - 1}, DataType::f16));
  try {
    graph.stored({7395, 96, 55, 55}, DataType::f16);
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(),
                 "a tensor f16[7395, 96, 55, 55] nhwc has 2147508000 elements, but the CUDA "
                 "backend takes at most 2147483647: make the batch or the image smaller");
  }
  EXPECT_THROW(graph.stored({7394, 96, 55, 55}, DataType::f16, 128), Error);
}

TEST(OperationGraph, UsesEveryTensorOfEveryGraph) {
  for (const OperationGraph& graph :
       {operations_of(with_prologue(Direction::forward)),
        operations_of(with_prologue(Direction::backward_weights)), operations_of(with_norm())}) {
    std::set<OperationGraph::Id> used;
    for (const OperationGraph::Operation& operation : graph.operations()) {
      const std::vector<OperationGraph::Id> ids = tensors_of(operation);
      used.insert(ids.begin(), ids.end());
    }
    EXPECT_EQ(used.size(), graph.tensors().size());
  }
}

}  // namespace
}  // namespace cnn::tests
