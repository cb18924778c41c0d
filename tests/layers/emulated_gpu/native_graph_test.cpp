#include "layers/cuda/cudnn/native_graph.h"

#include <cstddef>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "layers/cuda/conv_graph.h"
#include "layers/cuda/fused_graph.h"
#include "tests/layers/cuda/cudnn/h200.h"
#include "tests/support/error_of.h"

namespace cnn::tests {
namespace {

using layers::cuda::ConvGraph;
using layers::cuda::Direction;
using layers::cuda::NativeGraph;
using layers::cuda::OperationGraph;
using layers::cuda::Target;

class NativeGraphTest : public testing::Test {
 protected:
  // Returns the number of operations that cuDNN counts in its graph.
  std::size_t native_operations(const OperationGraph& operations) const {
    return NativeGraph(operations, target_)
        .native()
        .count(CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR);
  }

  static ConvGraph conv(Direction direction) {
    return {.direction = direction,
            .type = DataType::f16,
            .x = {2, 8, 4, 4},
            .w = {16, 8, 1, 1},
            .y = {2, 16, 4, 4},
            .window = {}};
  }

  const Target target_ = Target::described(h200().device_json);
};

TEST_F(NativeGraphTest, HasOneOperationForAConvolutionOfEachDirection) {
  for (const Direction direction :
       {Direction::forward, Direction::backward_data, Direction::backward_weights}) {
    EXPECT_EQ(native_operations(operations_of(conv(direction))), 1U);
  }
}

TEST_F(NativeGraphTest, HasAnOperationForBiasReluPrologueAndStatisticsEach) {
  ConvGraph graph = conv(Direction::forward);
  graph.bias = graph.relu = true;
  EXPECT_EQ(native_operations(operations_of(graph)), 3U);
  // Scale, shift and ReLU, the convolution, sums.
  EXPECT_EQ(native_operations(operations_of(layers::cuda::FusedGraph{
                .conv = conv(Direction::forward), .prologue = true, .statistics = true})),
            5U);
}

TEST_F(NativeGraphTest, KeepsTheOperationsAndTheTargetThatItWasMadeOf) {
  const OperationGraph operations = operations_of(conv(Direction::forward));
  const NativeGraph graph(operations, target_);
  EXPECT_EQ(&graph.target(), &target_);
  EXPECT_EQ(graph.operations().operations().size(), operations.operations().size());
}

TEST_F(NativeGraphTest, NamesTheShapeThatCudnnDoesNotTake) {
  ConvGraph graph = conv(Direction::forward);
  graph.y = {2, 16, 4, 3};
  EXPECT_THAT(error_of([&] { native_operations(operations_of(graph)); }),
              testing::HasSubstr("cuDNN cannot"));
}

}  // namespace
}  // namespace cnn::tests
