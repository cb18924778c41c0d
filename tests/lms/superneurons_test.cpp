#include <algorithm>
#include <gtest/gtest.h>
#include <string>
#include <vector>

#include "lms/policies.h"
#include "lms/summary.h"
#include "tests/lms/chain_step.h"

namespace cnn::lms {
namespace {

using tests::chain_step;
using tests::StepCase;
using tests::texts;

constexpr std::size_t cached_image = 64;  // bytes

// Returns a convolution, `activations` activations and the gradients of all of them.
StepCase step_with_segment(int activations) {
  StepCase c;
  Value x = c.make("conv", {c.images(), c.weights(1)});
  std::vector<Value> stash{x};
  for (int n = 0; n < activations; ++n) {
    x = c.make("relu", {x});
    stash.push_back(x);
  }
  x = c.make("conv", {x, c.weights(1)});
  const Value first = c.make("loss_backward", {x});
  Value dy = c.make("conv_backward", {first, stash.back()});
  for (auto value = stash.rbegin(); value != stash.rend(); ++value) {
    dy = c.make("relu_backward", {dy, *value});
  }
  c.settle(first);
  return c;
}

std::size_t recomputed(StepCase& c) {
  c.budget.device = c.peak(c.schedule).device_bytes - cached_image;
  return summarize(*c.graph, superneurons(c.request()).schedule).recomputed;
}

TEST(SuperNeurons, MovesNothingWhereTheStepFits) {
  StepCase c = step_with_segment(2);
  c.budget.device = c.peak(c.schedule).device_bytes;
  EXPECT_FALSE(summarize(*c.graph, superneurons(c.request()).schedule).moves());
}

TEST(SuperNeurons, ComputesASmallSegmentOnceAndALargeOneForEachGradient) {
  StepCase few = step_with_segment(2), many = step_with_segment(6);
  EXPECT_EQ(recomputed(few), 2U);
  EXPECT_EQ(recomputed(many), 6U + 5U + 4U + 3U + 2U + 1U);
}

TEST(SuperNeurons, CachesResultsOfConvolutionsAndFetchesThemAhead) {
  StepCase c = chain_step(5);
  c.budget.device = 4 * cached_image;
  const Plan plan = superneurons(c.request());
  const Summary did = summarize(*c.graph, plan.schedule);
  EXPECT_EQ(did.recomputed, 0U) << "the step has only convolutions";
  EXPECT_GT(did.swap_outs, 0U);
  EXPECT_LE(c.peak(plan.schedule).device_bytes, c.budget.device);
  EXPECT_EQ(c.outcome(plan.schedule), c.outcome(c.schedule));
  // conv_backward_weights#15 reads the tensor after the gradient of the preceding convolution.
  const std::vector<std::string> steps = texts(*c.graph, plan.schedule);
  const auto fetch = std::ranges::find_if(
      steps, [](const std::string& step) { return step.starts_with("fetch conv#0"); });
  ASSERT_NE(fetch, steps.end());
  EXPECT_LT(fetch, std::ranges::find(steps, "conv_backward_data#14"));
}

TEST(SuperNeurons, ComputesAgainOnlyWhereNoHostMemoryIsThere) {
  StepCase c = chain_step(5);
  c.budget = {.device = 4 * cached_image, .host = 0};
  EXPECT_FALSE(summarize(*c.graph, superneurons(c.request()).schedule).moves());
}

TEST(SuperNeurons, SwapsOnlyWhereRecomputationIsOff) {
  StepCase c = step_with_segment(6);
  c.budget.device = c.peak(c.schedule).device_bytes - cached_image;
  c.options.recompute = Recomputation::off;
  const Summary did = summarize(*c.graph, superneurons(c.request()).schedule);
  EXPECT_EQ(did.recomputed, 0U);
  EXPECT_GT(did.swap_outs, 0U);
}

}  // namespace
}  // namespace cnn::lms
