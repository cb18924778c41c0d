// Checks which tensors each operation reads and writes in the graphs that we give to cuDNN.

#include "layers/cuda/operation_graph.h"

#include <gtest/gtest.h>
#include <set>
#include <vector>

#include "runtime/error.h"
#include "tests/layers/cuda_grid/library_graphs.h"

namespace cnn::tests {
namespace {

using layers::cuda::ConvGraph;
using layers::cuda::Direction;
using layers::cuda::OperationGraph;
using Function = OperationGraph::Function;
using Elementwise = OperationGraph::Elementwise;

// The tensors in memory are x 1, w 2, bias 3 and y 4.
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
