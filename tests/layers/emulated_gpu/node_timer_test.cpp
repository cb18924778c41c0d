#include "layers/cuda/cudnn/node_timer.h"

#include <cstddef>
#include <gtest/gtest.h>

#include "layers/conv.h"
#include "layers/cuda/cudnn/kernels.h"
#include "tests/layers/emulated_gpu/live_libraries.h"

namespace cnn::tests {
namespace {

class NodeTimerTest : public LiveLibraries {
 protected:
  // Returns a 1x1 convolution of so many images, with the operands of its node.
  static Signature signature(std::int64_t images) {
    const TensorDesc image{
        .shape = {images, 8, 4, 4}, .type = DataType::f16, .layout = Layout::nhwc};
    const TensorDesc weights{.shape = {8, 8, 1, 1}, .type = DataType::f16, .layout = Layout::nhwc};
    return {.in = {image, weights}, .out = {image}};
  }

  const layers::Conv2d op{{.window = {}}};
};

TEST_F(NodeTimerTest, TimesANodeByItsKernelWhichMayAskForAnEngine) {
  const auto libraries = make({.tune = true});
  KernelTable table;
  layers::cuda::add_kernels(table, libraries);
  layers::cuda::NodeTimer timer(device);
  const auto seconds =
      libraries->node_seconds("conv", [&] { return timer.seconds_of(table, op, signature(2)); });
  ASSERT_TRUE(seconds);
  EXPECT_GT(*seconds, 0);
  EXPECT_EQ(libraries->counts().tuned, 1U);
}

TEST_F(NodeTimerTest, KnowsNoTimeOfANodeWithoutAKernel) {
  layers::cuda::NodeTimer timer(device);
  EXPECT_FALSE(timer.seconds_of(KernelTable(), op, signature(2)));
}

TEST_F(NodeTimerTest, KnowsNoTimeOfANodeThatDoesNotFitTheDevice) {
  KernelTable table;
  layers::cuda::add_kernels(table, make());
  layers::cuda::NodeTimer timer(device);
  const auto images =
      static_cast<std::int64_t>(device.memory_bytes() / (std::size_t{8} * 4 * 4 * 2));
  EXPECT_FALSE(timer.seconds_of(table, op, signature(images)));
}

}  // namespace
}  // namespace cnn::tests
