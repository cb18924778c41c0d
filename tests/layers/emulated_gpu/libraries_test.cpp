// Tests how the libraries choose engines on the emulated GPU: by time, as another rank chose, and
// after an engine refused to run.

#include "layers/cuda/cudnn/libraries.h"

#include <cstdlib>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "layers/conv.h"
#include "layers/cuda/conv_graph.h"
#include "layers/cuda/cudnn/kernels.h"
#include "layers/cuda/cudnn/node_timer.h"
#include "layers/cuda/cudnn/plan_runner.h"
#include "runtime/cuda/device.h"
#include "runtime/error.h"
#include "tests/support/files.h"

namespace cnn::tests {
namespace {

using layers::cuda::Libraries;
using layers::cuda::LibraryOptions;
using layers::cuda::PlanCache;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

const layers::cuda::ConvGraph convolution{
    .type = DataType::f16, .x = {2, 8, 4, 4}, .w = {8, 8, 1, 1}, .y = {2, 8, 4, 4}, .window = {}};
const Libraries::Build build = [] { return operations_of(convolution); };

class LiveLibraries : public testing::Test {
 protected:
  std::shared_ptr<Libraries> make(LibraryOptions options = {}) {
    const layers::cuda::Machine machine{.name = device_.name(),
                                        .memory_bytes = device_.facts().memory_bytes};
    std::optional<PlanCache> cache;
    if (options.tune) {
      cache.emplace(folder_ / "plans", PlanCache::Owner{.device = "any"}, true);
    }
    return std::make_shared<Libraries>(machine, options, device_, std::move(cache));
  }

  // Returns the sums of an image and weights of ones, as the engine chosen for the key computes
  // them.
  std::vector<std::uint16_t> run(const std::shared_ptr<Libraries>& libraries) {
    constexpr std::size_t image = 2 * 8 * 4 * 4, weights = 8 * 8;
    constexpr std::uint16_t one = 0x3c00;
    const auto stream = device_.make_stream(Lane::compute);
    const std::size_t planned = libraries->choose("key", build)->workspace;
    Buffer host = device_.allocate_host(image * sizeof(one));
    auto* const numbers = reinterpret_cast<std::uint16_t*>(host.data());
    std::fill_n(numbers, image, one);
    std::vector<Buffer> operands;
    std::vector<void*> pointers;
    for (const std::size_t elements : {image, weights, image}) {
      operands.push_back(device_.allocate(elements * sizeof(one)));
      pointers.push_back(operands.back().data());
      stream->copy(operands.back().data(), host.data(), elements * sizeof(one));
    }
    const Buffer workspace = device_.allocate(planned + 1);
    stream->synchronize();  // afterwards a run that fails leaves nothing queued
    layers::cuda::PlanRunner runner(libraries, "key", build);
    for (int i = 0; i < 2; ++i) {
      runner.run(*stream, pointers, workspace.data());
    }
    stream->copy(host.data(), operands.back().data(), host.bytes());
    stream->synchronize();
    return {numbers, numbers + image};
  }

  const TemporaryFolder folder_;
  cuda::CudaDevice device_;
};

TEST_F(LiveLibraries, ChooseWhatTheFirstRankHasChosenAndTimeNothing) {
  const auto first = make({.tune = true});
  const auto chosen = first->choose("key", build);
  ASSERT_TRUE(chosen);
  EXPECT_EQ(first->counts().tuned, 1U);
  const auto other = make({.tune = true});
  other->adopt(first->choices_text());
  EXPECT_EQ(other->choose("key", build), chosen);
  EXPECT_EQ(other->counts().adopted, 1U);
  EXPECT_EQ(other->counts().tuned, 0U);
  EXPECT_EQ(other->choices_text(), first->choices_text());
}

TEST_F(LiveLibraries, HaveNoEngineWhereTheFirstRankHasNone) {
  const auto libraries = make();
  libraries->adopt("key\tnone\nother key\t3\t-\t0\n");
  EXPECT_FALSE(libraries->choose("key", build));
  EXPECT_EQ(libraries->choose("other key", build)->engine, 3);
}

TEST_F(LiveLibraries, NameAnEngineOfTheFirstRankThatIsNotThere) {
  const auto libraries = make();
  libraries->adopt("key\t77\t-\t0\n");
  try {
    libraries->choose("key", build);
    FAIL() << "an engine was chosen";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(),
                AllOf(HasSubstr("cannot run engine 77 knobs - for key, which rank 0 has chosen"),
                      HasSubstr("use GPUs of one kind")));
  }
}

TEST_F(LiveLibraries, MeasureANodeOnceAndRememberItAsTheCacheDoes) {
  const auto libraries = make({.tune = true});
  int measured = 0;
  const auto measure = [&] {
    ++measured;
    return std::optional(1.23456789e-4);
  };
  EXPECT_EQ(libraries->node_seconds("a node", measure), 1.23457e-4);
  EXPECT_EQ(libraries->node_seconds("a node", measure), 1.23457e-4);
  EXPECT_EQ(measured, 1);
  EXPECT_EQ(libraries->counts().timed_nodes, 1U);
  EXPECT_EQ(make({.tune = true})->node_seconds("a node", measure), 1.23457e-4) << "a later run";
  EXPECT_EQ(measured, 1);
  const auto nothing = [] { return std::optional<double>(); };
  EXPECT_EQ(libraries->node_seconds("a node that does not fit", nothing), std::nullopt);
}

TEST_F(LiveLibraries, MeasureNoNodeWithoutTuningOrAfterItsSeconds) {
  const auto never = []() -> std::optional<double> {
    ADD_FAILURE() << "an engine was timed";
    return 1.0;
  };
  EXPECT_EQ(make()->node_seconds("a node", never), std::nullopt);
  EXPECT_EQ(make({.tune = true, .tune_seconds = 0})->node_seconds("a node", never), std::nullopt);
  const auto stopped = make({.tune = true});
  stopped->stop_tuning();
  EXPECT_EQ(stopped->node_seconds("a node", never), std::nullopt);
}

TEST_F(LiveLibraries, KnowTheSecondsOfNodesThatTheFirstRankKnowsAndNoOthers) {
  const auto first = make({.tune = true});
  const auto of = [](double seconds) { return [seconds] { return std::optional(seconds); }; };
  first->node_seconds("a node", of(2e-5));
  const auto other = make({.tune = true});
  other->node_seconds("a node that the first rank has not", of(3e-5));
  other->adopt(first->choices_text());
  EXPECT_EQ(other->node_seconds("a node", of(9)), 2e-5);
  EXPECT_EQ(other->node_seconds("a node that the first rank has not", of(9)), std::nullopt);
  EXPECT_EQ(other->choices_text(), first->choices_text());
  EXPECT_THROW(other->adopt("a node\tseconds\tfew\n"), Error);
}

TEST_F(LiveLibraries, ForgetTheSecondsOfNodesForOtherRanksToo) {
  const auto first = make({.tune = true});
  const auto measure = [] { return std::optional(2e-5); };
  first->node_seconds("a node", measure);
  first->forget_node_seconds();
  EXPECT_EQ(first->node_seconds("a node", measure), std::nullopt);
  EXPECT_EQ(first->choices_text(), "");
}

TEST_F(LiveLibraries, TimeANodeByItsKernelWhichMayAskForAnEngine) {
  const auto libraries = make({.tune = true});
  KernelTable table;
  layers::cuda::add_kernels(table, libraries);
  const layers::Conv2d op({.window = {}});
  const TensorDesc image{.shape = {2, 8, 4, 4}, .type = DataType::f16, .layout = Layout::nhwc};
  const TensorDesc weights{.shape = {8, 8, 1, 1}, .type = DataType::f16, .layout = Layout::nhwc};
  const Signature signature{.in = {image, weights}, .out = {image}};
  layers::cuda::NodeTimer timer(device_);
  const auto seconds =
      libraries->node_seconds("conv", [&] { return timer.seconds_of(table, op, signature); });
  ASSERT_TRUE(seconds);
  EXPECT_GT(*seconds, 0);
  EXPECT_EQ(libraries->counts().tuned, 1U);
}

TEST_F(LiveLibraries, RefuseChoicesThatCannotBeRead) {
  EXPECT_THROW(make()->adopt("key\t3\t-"), Error);
  EXPECT_THROW(make()->adopt("key"), Error);
}

TEST_F(LiveLibraries, TakeTheNextEngineWhereOneIsBuiltButDoesNotRun) {
  const std::vector<std::uint16_t> expected = run(make());
  const auto libraries = make();
  ASSERT_EQ(libraries->choose("key", build)->engine, 2);
  setenv("CNN_EMULATED_REFUSING_ENGINE", "2", 1);
  EXPECT_EQ(run(libraries), expected);
  EXPECT_EQ(run(libraries), expected) << "another node of the same graph";
  unsetenv("CNN_EMULATED_REFUSING_ENGINE");
  EXPECT_THAT(
      libraries->take_notes(),
      ElementsAre(AllOf(HasSubstr("cuDNN builds engine 2 "), HasSubstr(" for key and does not run"),
                        HasSubstr("it: engine 3 "), HasSubstr("engine 2 refuses to run"))));
}

TEST_F(LiveLibraries, SayWhyNoEngineRuns) {
  const auto libraries = make({.strict_f32 = true});
  ASSERT_EQ(libraries->choose("key", build)->engine, 3);
  setenv("CNN_EMULATED_REFUSING_ENGINE", "3", 1);
  EXPECT_THROW(run(libraries), Error);
  unsetenv("CNN_EMULATED_REFUSING_ENGINE");
  EXPECT_THAT(libraries->take_notes(), IsEmpty());
}

}  // namespace
}  // namespace cnn::tests
