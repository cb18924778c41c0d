#include "layers/cuda/cudnn/plan_runner.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <gmock/gmock.h>
#include <memory>
#include <vector>

#include "runtime/error.h"
#include "tests/layers/emulated_gpu/live_libraries.h"

namespace cnn::tests {
namespace {

using layers::cuda::Libraries;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class PlanRunnerTest : public LiveLibraries {
 protected:
  // The sums of an image and weights of ones, as the key's engine computes them.
  std::vector<std::uint16_t> run(const std::shared_ptr<Libraries>& libraries) {
    constexpr std::size_t image = std::size_t{2} * 8 * 4 * 4, weights = std::size_t{8} * 8;
    constexpr std::uint16_t one = 0x3c00;
    const auto stream = device.make_stream(Lane::compute);
    const std::size_t planned = libraries->choose("key", build_convolution)->workspace;
    Buffer host = device.allocate_host(image * sizeof(one));
    auto* const numbers = reinterpret_cast<std::uint16_t*>(host.data());
    std::fill_n(numbers, image, one);
    std::vector<Buffer> operands;
    std::vector<void*> pointers;
    for (const std::size_t elements : {image, weights, image}) {
      operands.push_back(device.allocate(elements * sizeof(one)));
      pointers.push_back(operands.back().data());
      stream->copy(operands.back().data(), host.data(), elements * sizeof(one));
    }
    const Buffer workspace = device.allocate(planned + 1);
    stream->synchronize();  // a run that fails leaves nothing queued
    layers::cuda::PlanRunner runner(libraries, "key", build_convolution);
    for (int i = 0; i < 2; ++i) {
      runner.run(*stream, pointers, workspace.data());
    }
    stream->copy(host.data(), operands.back().data(), host.bytes());
    stream->synchronize();
    return {numbers, numbers + image};
  }
};

TEST_F(PlanRunnerTest, TakesTheNextEngineWhereOneIsBuiltButDoesNotRun) {
  const std::vector<std::uint16_t> expected = run(make());
  const auto libraries = make();
  ASSERT_EQ(libraries->choose("key", build_convolution)->engine, 2);
  setenv("CNN_EMULATED_REFUSING_ENGINE", "2", 1);
  EXPECT_EQ(run(libraries), expected);
  EXPECT_EQ(run(libraries), expected) << "another node of the same graph";
  unsetenv("CNN_EMULATED_REFUSING_ENGINE");
  EXPECT_THAT(
      libraries->take_notes(),
      ElementsAre(AllOf(HasSubstr("cuDNN builds engine 2 "), HasSubstr(" for key and does not run"),
                        HasSubstr("it: engine 3 "), HasSubstr("engine 2 refuses to run"))));
}

TEST_F(PlanRunnerTest, SaysWhyNoEngineRuns) {
  const auto libraries = make({.strict_f32 = true});
  ASSERT_EQ(libraries->choose("key", build_convolution)->engine, 3);
  setenv("CNN_EMULATED_REFUSING_ENGINE", "3", 1);
  EXPECT_THROW(run(libraries), Error);
  unsetenv("CNN_EMULATED_REFUSING_ENGINE");
  EXPECT_THAT(libraries->take_notes(), IsEmpty());
}

TEST_F(PlanRunnerTest, SumsTheEightChannelsOfEveryPixel) {
  constexpr std::uint16_t eight = 0x4800;  // in f16
  EXPECT_THAT(run(make()), testing::Each(eight));
}

TEST_F(PlanRunnerTest, IsNotMadeWhereTheGraphHasNoEngine) {
  const auto libraries = make();
  libraries->adopt("key\tnone\n");
  EXPECT_THROW(layers::cuda::PlanRunner(libraries, "key", build_convolution), Error);
}

}  // namespace
}  // namespace cnn::tests
