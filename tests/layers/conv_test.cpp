#include "layers/conv.h"

#include <cmath>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "layers/operands.h"
#include "runtime/error.h"
#include "tests/support/literals.h"

namespace cnn::layers {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;
using tests::floats;
using tests::nine;
using tests::run;
using tests::tensor;

// Returns the image 1 2 3 / 4 5 6 / 7 8 9.
TEST(Conv, SlidesOverThePaddedImage) {
  const Window window{.kernel_h = 2, .kernel_w = 2, .pad_bottom = 1, .pad_right = 1};
  const auto y = run(Conv2d({.window = window}), nine(), tensor({1, 1, 2, 2}, {1, 10, 100, 1000}));
  EXPECT_THAT(floats(y[0]), ElementsAre(5421, 6532, 603, 8754, 9865, 906, 87, 98, 9));
}

TEST(Conv, StridesAndSumsOverChannels) {
  const Window window{.stride_h = 2, .stride_w = 2};
  const auto x = tensor({1, 2, 1, 3}, {1, 2, 3, 4, 5, 6});
  const auto w = tensor({2, 2, 1, 1}, {1, 10, -1, 0});
  const auto bias = tensor({2}, {0.5, 0});
  const auto y = run(Conv2d({.window = window, .bias = true, .relu = true}), x, w, bias);
  EXPECT_EQ(y[0].desc().shape, (Shape{1, 2, 1, 2}));
  EXPECT_THAT(floats(y[0]), ElementsAre(41.5, 63.5, 0, 0));
}

TEST(Conv, AddsTheResidualBeforeTheActivation) {
  const auto x = tensor({1, 1, 1, 2}, {1, -4});
  const auto y = run(Conv2d({.window = {}, .residual = true, .relu = true}), x,
                     tensor({1, 1, 1, 1}, {2}), tensor({1, 1, 1, 2}, {-1, 5}));
  EXPECT_THAT(floats(y[0]), ElementsAre(1, 0));
}

TEST(Conv, KeepsChannelsApartInTheDepthwiseForm) {
  const auto x = tensor({1, 2, 1, 2}, {1, 2, 3, 4});
  const auto y = run(Conv2d({.window = {}, .depthwise = true}), x, tensor({2, 1, 1, 1}, {10, -1}));
  EXPECT_THAT(floats(y[0]), ElementsAre(10, 20, -3, -4));
}

TEST(Conv, RefusesWeightsThatDoNotFit) {
  EXPECT_THAT(([] {
                run(Conv2d({}), nine(), tensor({1, 2, 1, 1}, {1, 2}));
              }),
              ThrowsMessage<Error>(HasSubstr("conv: weights do not fit the images, given "
                                             "f32[1, 1, 3, 3] nchw; f32[1, 2, 1, 1] nchw")));
}

TEST(Conv, CountsAMultiplyAddAsTwo) {
  const Window window{
      .kernel_h = 3, .kernel_w = 3, .pad_top = 1, .pad_bottom = 1, .pad_left = 1, .pad_right = 1};
  const std::vector<TensorDesc> in{described({2, 64, 56, 56}, DataType::f32),
                                   described({32, 64, 3, 3}, DataType::f32)};
  EXPECT_EQ(Conv2d({.window = window}).flops(in), 2.0 * 2 * 32 * 56 * 56 * 64 * 9);
}

TEST(Conv, NamesItsParametersAsTheOriginal) {
  Graph graph;
  const Value x = graph.input("x", described({2, 3, 9, 9}, DataType::f32));
  const Value y = conv(x, {.filters = 8, .kernel = 3, .stride = 2, .bias_value = 0.5});
  EXPECT_EQ(y.desc().shape, (Shape{2, 8, 5, 5}));
  const TensorInfo& kernel = graph.info(*graph.find("v/cg/conv0/conv2d/kernel"));
  EXPECT_EQ(kernel.desc.shape, (Shape{8, 3, 3, 3}));
  EXPECT_EQ(kernel.saved_as, SavedAs::hwio);
  EXPECT_TRUE(kernel.decay);
  EXPECT_NEAR(kernel.initializer.stddev, std::sqrt(1 / 27.0) / 0.87962566103423978, 1e-12);
  const TensorInfo& biases = graph.info(*graph.find("v/cg/conv0/biases"));
  EXPECT_EQ(biases.desc.shape, (Shape{8}));
  EXPECT_EQ(biases.initializer.mean, 0.5);
  conv(y, {.filters = 4, .stddev = 0.05});
  EXPECT_EQ(graph.info(*graph.find("v/cg/conv1/conv2d/kernel")).initializer.stddev, 0.05);
}

TEST(Conv, KeepsTheBiasAndTheReluApartFromEachOther) {
  Graph graph;
  const Value x = graph.input("x", described({1, 3, 4, 4}, DataType::f32));
  conv(x, {.filters = 8, .bias = false, .relu = false});
  EXPECT_EQ(graph.nodes().size(), 1);
  EXPECT_FALSE(graph.find("v/cg/conv0/biases"));
  conv(x, {.filters = 8});
  EXPECT_EQ(graph.nodes().back().op->name(), "relu");
}

TEST(Conv, HasOneFilterPerChannelInTheDepthwiseForm) {
  Graph graph;
  const Value x = graph.input("x", described({1, 6, 4, 4}, DataType::f32));
  EXPECT_EQ(conv(x, {.kernel = 3, .depthwise = true}).desc().shape, (Shape{1, 6, 4, 4}));
  const TensorInfo& kernel = graph.info(*graph.find("v/cg/conv0/conv2d/kernel"));
  EXPECT_EQ(kernel.desc.shape, (Shape{6, 1, 3, 3}));
  EXPECT_EQ(kernel.saved_as, SavedAs::hwoi);
}

TEST(Conv, NamesTheLayerWhoseWindowDoesNotFit) {
  EXPECT_THAT(([] {
                Graph graph;
                const Value x = graph.input("x", described({1, 3, 4, 4}, DataType::f32));
                conv(x, {.filters = 1, .kernel = 5, .padding = Padding::valid});
              }),
              ThrowsMessage<Error>(HasSubstr("v/cg/conv0: a window of 5x5")));
}

}  // namespace
}  // namespace cnn::layers
