#include "bench/session/step_samples.h"

#include <algorithm>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "bench/session/session.h"
#include "bench/session/team.h"
#include "runtime/cpu/device.h"
#include "tests/bench/session/small_team.h"
#include "tests/support/files.h"
#include "tests/support/test_ops.h"
#include "tests/support/test_step.h"

namespace cnn::bench {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

// Returns the samples of a step that reads images of one row and two columns with these values.
std::vector<StepSamples::Image> sampled_images(std::int64_t examples, std::int64_t channels,
                                               const std::vector<float>& values,
                                               Layout layout = Layout::nchw) {
  auto graph = std::make_shared<Graph>();
  const Value images =
      graph->input("images", {.shape = Shape{examples, channels, 1, 2}, .layout = layout});
  graph->output("y", emit(tests::Relu(), {images}));
  tests::TestStep step(make_plan(graph, tests::test_kernels()), tests::test_kernels());
  std::ranges::copy(values, step.inputs()[0].as<float>().begin());
  Backend backend;
  backend.device = std::make_unique<CpuDevice>();
  StepSamples samples(step.executor().plan(), backend, StepSamples::Detail::all);
  step.executor().observe(samples);
  samples.begin(true);
  step.run();
  return samples.images();
}

TEST(StepSamples, ScaleTheLargestValueToWhiteAndLeaveZeroBlack) {
  const auto images = sampled_images(1, 3, {0, 4, 1, 4, 2, 4});
  ASSERT_THAT(images, SizeIs(1));
  EXPECT_EQ(images[0].height, 1);
  EXPECT_EQ(images[0].width, 2);
  EXPECT_THAT(images[0].pixels, ElementsAre(0, 64, 128, 255, 255, 255));
}

TEST(StepSamples, MakeZeroGreyWhereThereAreNegativeValues) {
  EXPECT_THAT(sampled_images(1, 3, {-2, 0, 2, 0, 1, 0})[0].pixels,
              ElementsAre(0, 254, 191, 127, 127, 127));
}

TEST(StepSamples, ShowValuesThatAreNotFiniteInBlack) {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  EXPECT_THAT(sampled_images(1, 1, {infinity, 2})[0].pixels, ElementsAre(0, 0, 0, 255, 255, 255));
  EXPECT_THAT(sampled_images(1, 1, {0, 0})[0].pixels, ElementsAre(0, 0, 0, 0, 0, 0));
}

TEST(StepSamples, ReadChannelsWhereTheLayoutHasThem) {
  EXPECT_EQ(sampled_images(1, 3, {0, 1, 2, 4, 4, 4}, Layout::nhwc)[0].pixels,
            sampled_images(1, 3, {0, 4, 1, 4, 2, 4}, Layout::nchw)[0].pixels);
}

TEST(StepSamples, TakeThreeImagesAtMostAndOnlyGreyOrColouredOnes) {
  const std::vector<StepSamples::Image> images = sampled_images(4, 1, {1, 0, 0, 1, 1, 1, 9, 9});
  ASSERT_THAT(images, SizeIs(3));
  EXPECT_THAT(images[1].pixels, ElementsAre(0, 0, 0, 255, 255, 255));
  EXPECT_THAT(sampled_images(2, 1, {1, 0, 0, 1}), SizeIs(2));
  EXPECT_THAT(sampled_images(1, 2, {1, 0, 0, 1}), IsEmpty());
}

// A training whose summaries have this verbosity.
struct SampledTraining {
  explicit SampledTraining(const std::string& verbosity,
                           const std::string& more = "--display_every=10")
      : run({"--train_dir=" + folder.path().string(), "--save_summaries_steps=1",
             "--model=resnet20", "--summary_verbosity=" + verbosity, more}) {
    run.team.start(0);
  }
  const StepSamples* step(bool wanted) {
    run.team.want_samples(wanted);
    run.team.step(0, 0.1);
    return run.team.samples();
  }

  tests::TemporaryFolder folder;
  tests::SmallTeam run;
};

std::int64_t gradients_in(const StepSamples& samples) {
  std::int64_t count = 0;
  for (const StepSamples::Gradient& gradient : samples.gradients()) {
    count += gradient.values.count();
  }
  return count;
}

TEST(StepSamples, HaveEveryElementOfEachGradient) {
  SampledTraining training("3");
  const StepSamples* const samples = training.step(true);
  ASSERT_NE(samples, nullptr);
  std::int64_t zeros = 0, elements = 0;
  const Graph& graph = *training.run.team.first().plan().graph;
  for (const TensorInfo& info : graph.tensors()) {
    elements += info.role == Role::parameter ? info.desc.shape.elements() : 0;
  }
  EXPECT_EQ(gradients_in(*samples), elements) << "without padding";
  for (const StepSamples::Gradient& gradient : samples->gradients()) {
    EXPECT_EQ(gradient.values.not_finite(), 0) << gradient.parameter;
    EXPECT_LE(gradient.values.min(), gradient.values.max());
  }
  zeros = elements - samples->log_gradients().count();
  EXPECT_GE(zeros, 0);
  EXPECT_LT(zeros, elements / 2);
  EXPECT_THAT(samples->images(), SizeIs(2));
}

TEST(StepSamples, HaveOnlyAllGradientsTogetherWhereNoMoreIsAskedFor) {
  SampledTraining some("2"), all("3");
  const StepSamples* const together = some.step(true);
  EXPECT_EQ(gradients_in(*together), 0);
  EXPECT_THAT(together->images(), IsEmpty());
  EXPECT_EQ(together->log_gradients().buckets().counts,
            all.step(true)->log_gradients().buckets().counts);
}

TEST(StepSamples, AreTheSameOnADeviceWithItsOwnMemory) {
  SampledTraining here("3"), apart("3", "--device_memory_mb=500");
  const StepSamples *const a = here.step(true), *const b = apart.step(true);
  EXPECT_EQ(a->log_gradients().sum(), b->log_gradients().sum());
  EXPECT_EQ(gradients_in(*a), gradients_in(*b));
  ASSERT_THAT(b->images(), SizeIs(2));
  EXPECT_EQ(a->images()[1].pixels, b->images()[1].pixels);
}

TEST(StepSamples, AreEmptyOfAStepThatWasNotWanted) {
  SampledTraining training("3");
  training.step(true);
  const StepSamples* const samples = training.step(false);
  EXPECT_THAT(samples->gradients(), IsEmpty());
  EXPECT_THAT(samples->images(), IsEmpty());
  EXPECT_EQ(samples->log_gradients().count(), 0);
}

TEST(StepSamples, AreNotTakenForScalarsAlone) {
  EXPECT_EQ(SampledTraining("1").step(true), nullptr);
}

}  // namespace
}  // namespace cnn::bench
