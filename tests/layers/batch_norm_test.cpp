#include "layers/batch_norm.h"

#include <cmath>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <string>
#include <vector>

#include "layers/operands.h"
#include "runtime/error.h"
#include "tests/support/literals.h"

namespace cnn::layers {
namespace {

using testing::ElementsAre;
using testing::FloatNear;
using testing::Pointwise;
using tests::floats;
using tests::run;
using tests::tensor;

TEST(BatchNorm, NormalisesByBiasedVariance) {
  const BatchNormAttributes a{.epsilon = 0, .scale = true, .variables = {}};
  const auto out =
      run(BatchNorm(a), tensor({2, 1, 1, 2}, {1, 3, 5, 7}), tensor({1}, {10}), tensor({1}, {100}));
  EXPECT_FLOAT_EQ(floats(out[1])[0], 4);
  EXPECT_FLOAT_EQ(floats(out[2])[0], 5);
  const float step = 10 / std::sqrt(5.0F);
  EXPECT_THAT(floats(out[0]), Pointwise(FloatNear(1e-5F),
                                        {100 - 3 * step, 100 - step, 100 + step, 100 + 3 * step}));
}

TEST(BatchNorm, UsesMovingAveragesInInference) {
  const BatchNormAttributes a{.epsilon = 1, .relu = true, .residual = true, .variables = {}};
  const auto y = run(BatchNormInference(a), tensor({1, 1, 1, 2}, {9, -9}), tensor({1}, {1}),
                     tensor({1}, {5}), tensor({1}, {3}), tensor({1, 1, 1, 2}, {0.5, 0.5}));
  EXPECT_THAT(floats(y[0]), ElementsAre(3.5, 0));  // (9 - 5) / 2 + 1 + 0.5
}

// The norm's output before the ReLU is -3, 1, 5, and the limit is 4.
TEST(BatchNorm, PassesTheGradientBetweenZeroAndTheLimit) {
  const BatchNormAttributes a{.epsilon = 1, .relu = true, .limit = 4, .variables = {}};
  const tests::HostTensor x = tensor({1, 1, 1, 3}, {-4, 0, 4}), beta = tensor({1}, {1});
  const tests::HostTensor mean = tensor({1}, {0}), variance = tensor({1}, {0});
  EXPECT_THAT(floats(run(BatchNormInference(a), x, beta, mean, variance)[0]), ElementsAre(0, 1, 4));
  const auto gradients =
      run(BatchNormBackward(a), x, beta, mean, variance, tensor({1, 1, 1, 3}, {100, 6, 100}));
  EXPECT_THAT(floats(gradients[0]), ElementsAre(-2, 4, -2));  // the mean of 0, 6, 0 is 2
  EXPECT_THAT(floats(gradients[1]), ElementsAre(6));
}

TEST(BatchNorm, LimitsOnlyAReluWithoutAResidual) {
  const TensorDesc x = described({1, 3, 2, 2}, DataType::f32), beta = described({3}, DataType::f32);
  for (const bool relu : {false, true}) {
    const BatchNorm op({.relu = relu, .limit = 6, .residual = relu, .variables = {}});
    const std::vector<TensorDesc> in =
        relu ? std::vector<TensorDesc>{x, beta, x} : std::vector<TensorDesc>{x, beta};
    EXPECT_THROW(op.infer(in), Error);
  }
}

TEST(BatchNorm, FoldsIntoTheConvolution) {
  const auto folded =
      run(FoldBatchNorm(1, true, true), tensor({2, 1, 1, 1}, {3, 5}), tensor({2}, {4, 6}),
          tensor({2}, {1, 2}), tensor({2}, {10, 20}), tensor({2}, {3, 8}), tensor({2}, {12, 21}));
  EXPECT_THAT(floats(folded[0]), ElementsAre(6, 10));  // the scale is 4 / 2 and 6 / 3
  EXPECT_THAT(floats(folded[1]), ElementsAre(5, 4));   // (12 - 10) 2 + 1, (21 - 20) 2 + 2
}

TEST(MovingAverage, FeedsTheUnbiasedVariance) {
  const auto mean = tensor({1}, {8});
  const auto variance = tensor({1}, {8});
  run(MovingAverage({{.decay = 0.75, .count = 5}}), mean, variance, tensor({1}, {4}),
      tensor({1}, {4}));
  EXPECT_FLOAT_EQ(floats(mean)[0], 7);
  EXPECT_FLOAT_EQ(floats(variance)[0], 7.25);  // 0.75 * 8 + 0.25 * 4 * 5 / 4
}

TEST(ConvBn, PutsTheVariablesOfTheNormBelowTheConvolution) {
  Graph graph;
  const NameScope scope(graph, "resnet_v10");
  const Value x = graph.input("x", described({2, 3, 4, 4}, DataType::f32));
  const Value y = conv_bn(x, {.filters = 8, .relu = false}, {.scale = true});
  batch_norm(y, {});
  std::vector<std::string> names;
  for (const TensorInfo& info : graph.tensors()) {
    if (info.role == Role::parameter || info.role == Role::state) {
      names.push_back(info.name.substr(std::string("v/cg/resnet_v10/").size()));
    }
  }
  EXPECT_THAT(names, ElementsAre("conv0/conv2d/kernel", "conv0/batchnorm0/gamma",
                                 "conv0/batchnorm0/beta", "conv0/batchnorm0/moving_mean",
                                 "conv0/batchnorm0/moving_variance", "batchnorm1/beta",
                                 "batchnorm1/moving_mean", "batchnorm1/moving_variance"));
}

TEST(BatchNorm, StartsAsTheIdentityAndTakesNoPartInTheL2Term) {
  Graph graph;
  const Value x = graph.input("x", described({2, 3, 4, 4}, DataType::f32));
  batch_norm(x, {.scale = true});
  const auto info = [&](std::string_view name) {
    return graph.info(*graph.find("v/cg/batchnorm0/" + std::string(name)));
  };
  EXPECT_EQ(info("gamma").initializer.mean, 1);
  EXPECT_EQ(info("beta").initializer.mean, 0);
  EXPECT_EQ(info("moving_mean").initializer.mean, 0);
  EXPECT_EQ(info("moving_variance").initializer.mean, 1);
  EXPECT_FALSE(info("gamma").decay);
  EXPECT_TRUE(info("moving_mean").saved);
  batch_norm(x, {.decay_parameters = true});
  EXPECT_TRUE(graph.info(*graph.find("v/cg/batchnorm1/beta")).decay);
}

TEST(BatchNorm, UsesMovingAveragesOutsideTraining) {
  Graph graph({.training = false});
  batch_norm(graph.input("x", described({2, 3, 4, 4}, DataType::f32)), {});
  EXPECT_EQ(graph.nodes().back().op->name(), "batch_norm_inference");
  append_moving_averages(graph);
  EXPECT_EQ(graph.nodes().size(), 1);
}

TEST(MovingAverage, IsOneNodeForAllLayersOfATrainingGraph) {
  Graph graph;
  Value y = graph.input("x", described({2, 3, 4, 5}, DataType::f32));
  y = batch_norm(y, {.decay = 0.5});
  y = conv_bn(y, {.filters = 6, .stride = 2}, {.decay = 0.9});
  append_moving_averages(graph);
  const Node& node = graph.nodes().back();
  const auto& op = dynamic_cast<const MovingAverage&>(*node.op);
  ASSERT_EQ(op.layers.size(), 2);
  EXPECT_EQ(op.layers[0].decay, 0.5);
  EXPECT_EQ(op.layers[0].count, 40);
  EXPECT_EQ(op.layers[1].decay, 0.9);
  EXPECT_EQ(op.layers[1].count, 2 * 2 * 3);
  EXPECT_EQ(graph.info(node.inputs[4]).name, "v/cg/conv0/batchnorm1/moving_mean");
  EXPECT_TRUE(op.mutates(5));
  EXPECT_FALSE(op.mutates(6));
}

}  // namespace
}  // namespace cnn::layers
