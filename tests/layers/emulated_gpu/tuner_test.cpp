#include "layers/cuda/cudnn/tuner.h"

#include <cstdlib>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <optional>
#include <vector>

#include "layers/cuda/conv_graph.h"
#include "runtime/cuda/device.h"
#include "tests/support/error_of.h"

namespace cnn::tests {
namespace {

using layers::cuda::Choice;
using layers::cuda::ConvGraph;
using layers::cuda::NativeGraph;
using layers::cuda::Tuner;
using testing::HasSubstr;

class TunerTest : public testing::Test {
 protected:
  void SetUp() override {
    cudnnHandle_t handle = nullptr;
    ASSERT_EQ(cudnnCreate(&handle), CUDNN_STATUS_SUCCESS);
    owned.reset(handle);
    target = layers::cuda::Target::live(handle);
  }

  NativeGraph graph_of(std::int64_t images) const {
    const ConvGraph graph{.type = DataType::f16,
                          .x = {images, 8, 4, 4},
                          .w = {8, 8, 1, 1},
                          .y = {images, 8, 4, 4},
                          .window = {}};
    return {operations_of(graph), *target};
  }

  cuda::CudaDevice device;
  layers::cuda::CudnnHandle owned;
  std::optional<layers::cuda::Target> target;
};

// Engine 77 has no plan, so whatever the times are, the other one is the fastest.
TEST_F(TunerTest, ReturnsTheFastestOfTheEnginesThatRun) {
  const std::vector<Choice> choices{{.engine = 77}, {.engine = 3}};
  Tuner tuner(device, owned.get());
  const auto best = tuner.fastest(graph_of(2), choices);
  ASSERT_TRUE(best);
  EXPECT_EQ(best->choice.engine, 3);
  EXPECT_GT(best->seconds, 0);
}

TEST_F(TunerTest, SaysWhyNoneOfTheEnginesRan) {
  const std::vector<Choice> choices{{.engine = 3}};
  Tuner tuner(device, owned.get());
  setenv("CNN_EMULATED_REFUSING_ENGINE", "3", 1);
  EXPECT_THAT(error_of([&] { tuner.fastest(graph_of(2), choices); }),
              testing::AllOf(HasSubstr("none of 1 engines of cuDNN ran while tuning"),
                             HasSubstr("engine 3 refuses to run")));
  unsetenv("CNN_EMULATED_REFUSING_ENGINE");
}

TEST_F(TunerTest, TimesNothingThatDoesNotFitTheDevice) {
  const std::vector<Choice> choices{{.engine = 3}};
  Tuner tuner(device, owned.get());
  const auto images = static_cast<std::int64_t>(device.memory_bytes() / (8 * 4 * 4 * 2));
  EXPECT_FALSE(tuner.fastest(graph_of(images), choices));
}

}  // namespace
}  // namespace cnn::tests
