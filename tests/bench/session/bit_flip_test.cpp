#include "bench/session/bit_flip.h"

#include <bit>
#include <cstdint>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <memory>
#include <vector>

#include "runtime/cpu/device.h"
#include "tests/support/error_of.h"
#include "tests/support/test_ops.h"
#include "tests/support/test_step.h"

namespace cnn::bench {
namespace {

using testing::ElementsAre;

// Returns a graph of y = 2 x + 1 and z = y + 1 on three floats each.
std::shared_ptr<const Graph> two_scaled() {
  auto graph = std::make_shared<Graph>();
  const Value y = emit(tests::Scale(2), {graph->input("x", tests::floats(3))});
  graph->output("y", y);
  graph->output("z", emit(tests::Scale(1), {y}));
  return graph;
}

// Runs a step with a flipped bit and returns, for each float of the result, its difference from the
// correct bits.
class FlippedStep {
 public:
  explicit FlippedStep(const FaultSpec& fault,
                       StepPlan plan = make_plan(two_scaled(), tests::test_kernels()))
      : tensors_(*plan.graph),
        step_(std::move(plan), tests::test_kernels()),
        flip_(fault, tensors_, device_) {
    step_.run();
    right_ = step_.outcome();
    step_.executor().observe(flip_);
  }

  std::vector<std::uint32_t> difference_in(std::int64_t global_step) {
    flip_.begin(global_step);
    step_.run();
    const std::vector<float> found = step_.outcome();
    std::vector<std::uint32_t> difference;
    for (std::size_t i = 0; i < found.size(); ++i) {
      difference.push_back(std::bit_cast<std::uint32_t>(found[i]) ^
                           std::bit_cast<std::uint32_t>(right_[i]));
    }
    return difference;
  }
  const std::vector<float>& right() const { return right_; }

 private:
  CpuDevice device_;
  WrittenTensors tensors_;
  tests::TestStep step_;
  BitFlip flip_;
  std::vector<float> right_;
};

FaultSpec flip_in(const char* tensor) {
  return {.what = "flip", .rank = 0, .step = 2, .tensor = tensor};
}

TEST(BitFlip, ChangesOneBitOfTheFirstElementInItsStepAlone) {
  FlippedStep step(flip_in("scale#1"));
  const std::vector<std::uint32_t> none(6, 0);
  EXPECT_EQ(step.difference_in(1), none);
  EXPECT_THAT(step.difference_in(2), ElementsAre(0, 0, 0, 0x10, 0, 0));
  EXPECT_EQ(step.difference_in(3), none);
}

TEST(BitFlip, IsSeenByTheNodesThatReadTheTensor) {
  const std::vector<std::uint32_t> difference = FlippedStep(flip_in("scale#0")).difference_in(2);
  EXPECT_EQ(difference[0], 0x10U);
  EXPECT_NE(difference[3], 0U);
}

TEST(BitFlip, TakesATensorInTheMiddleOfTheStepWhereNoneIsNamed) {
  EXPECT_THAT(FlippedStep(flip_in("")).difference_in(2), ElementsAre(0, 0, 0, 0x10, 0, 0));
}

// The step runs the first node again between the other nodes, and the output is that of the second
// run.
TEST(BitFlip, LeavesTheTensorOfANodeThatRunsAgain) {
  const std::shared_ptr<const Graph> graph = two_scaled();
  Schedule schedule = make_schedule(*graph);
  std::vector<Step> steps;
  for (const Step& step : schedule.steps) {
    steps.push_back(step);
    const auto* const compute = std::get_if<Compute>(&step.action);
    if (compute != nullptr && compute->node == NodeId{1}) {
      steps.push_back({.action = Compute{NodeId{0}}});
    }
  }
  schedule.steps = steps;
  for (Step& step : schedule.steps) {
    step.after.clear();
  }
  const std::vector<KernelSpec> specs = describe(*graph, tests::test_kernels());
  FlippedStep step(flip_in("scale#0"), make_plan(graph, specs, std::move(schedule)));
  const std::vector<std::uint32_t> difference = step.difference_in(2);
  EXPECT_EQ(difference[0], 0U) << "y was computed again";
  EXPECT_NE(difference[3], 0U) << "z reads the flipped y of the first run";
}

TEST(BitFlip, RefusesATensorThatTheStepDoesNotWrite) {
  EXPECT_THAT(tests::error_of([] { FlippedStep step(flip_in("conv#99")); }),
              testing::HasSubstr("the step writes no tensor conv#99"));
}

}  // namespace
}  // namespace cnn::bench
