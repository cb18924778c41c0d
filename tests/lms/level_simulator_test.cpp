#include "lms/level_simulator.h"

#include <gtest/gtest.h>
#include <vector>

#include "lms/stash.h"
#include "tests/lms/chain_step.h"
#include "tests/lms/random_step.h"

namespace cnn::lms {
namespace {

using tests::chain_step;
using tests::StepCase;

constexpr std::size_t image_bytes = 64;

LevelSimulator::Outcome play(const StepCase& c, const LevelParameters& parameters) {
  const Request request = c.request();
  const Levels levels(*c.graph, c.schedule);
  const std::vector<Stashed> tensors = candidates(request);
  const LevelSwaps swaps(request, levels, tensors);
  return LevelSimulator(request, levels, swaps).play(parameters);
}

// Returns the largest number of bytes in use at a time; the simulator passes only with one byte
// more.
std::size_t simulated_peak(StepCase& c, const LevelParameters& parameters) {
  std::size_t fails = 0, passes = std::size_t{1} << 20U;
  while (passes - fails > 1) {
    const std::size_t middle = fails + (passes - fails) / 2;
    c.budget.device = middle;
    (play(c, parameters).passed ? passes : fails) = middle;
  }
  return passes - 1;
}

constexpr LevelParameters nothing_leaves{.threshold = 1000, .ahead = 1, .groupby = 0};

// The peak is at dw2, which reads y1 for the last time while the gradient of y2 lives. Weights do
// not count.
TEST(LevelSimulator, CountsTensorsFromTheirMakerToTheirLastReader) {
  StepCase c = chain_step(2);
  EXPECT_EQ(simulated_peak(c, nothing_leaves), 3 * image_bytes);
  StepCase longer = chain_step(10);
  EXPECT_EQ(simulated_peak(longer, nothing_leaves), 11 * image_bytes)
      << "all ten images and the first gradient";
}

TEST(LevelSimulator, KeepsNothingOnTheHostWhereNothingLeaves) {
  const LevelSimulator::Outcome outcome = play(chain_step(10), nothing_leaves);
  EXPECT_TRUE(outcome.passed);
  EXPECT_EQ(outcome.host_bytes, 0U);
}

TEST(LevelSimulator, SaysWhatLiesOnTheHostAtATime) {
  const StepCase c = chain_step(10);
  for (const auto& [threshold, leaving] :
       {std::pair{1, 9U}, {3, 8U}, {5, 7U}, {17, 1U}, {19, 0U}}) {
    const auto outcome = play(c, {.threshold = threshold, .sync = SyncMode::both});
    EXPECT_EQ(outcome.host_bytes, leaving * image_bytes) << threshold;
  }
}

// The first image is back before the second one is made.
TEST(LevelSimulator, TakesOffTheHostWhatHasComeBack) {
  StepCase c;
  Value x = c.images();
  for (int image = 0; image < 2; ++image) {
    const Value far = c.make("conv", {x});
    x = far;
    for (int layer = 0; layer < 4; ++layer) {
      x = c.make("relu", {x});
    }
    x = c.make("add", {x, far});
  }
  const Value first = c.make("loss_backward", {x});
  for (const Node& node : std::vector<Node>(c.graph->nodes().begin(), c.graph->nodes().end())) {
    if (node.op->name() == "conv") {
      c.make("conv_backward", {first, {c.graph.get(), node.outputs.front()}});
    }
  }
  c.settle(first);
  const auto outcome = play(c, {.threshold = 2, .groupby = 1000, .sync = SyncMode::both});
  EXPECT_TRUE(outcome.passed);
  EXPECT_EQ(outcome.host_bytes, image_bytes);
}

TEST(LevelSimulator, NeedsLessWhereMoreLeaves) {
  StepCase c = chain_step(20);
  std::size_t before = 0;
  for (const int threshold : {1, 11, 21, 41}) {
    const std::size_t peak = simulated_peak(c, {.threshold = threshold, .ahead = 1, .groupby = 0});
    EXPECT_GT(peak, before) << threshold;
    before = peak;
  }
}

TEST(LevelSimulator, NeedsMoreForCopiesThatComeBackEarlier) {
  StepCase c = chain_step(20);
  const auto peak = [&](std::int64_t ahead) {
    return simulated_peak(c, {.threshold = 1, .ahead = ahead, .groupby = 0});
  };
  EXPECT_LT(peak(1), peak(5));
  EXPECT_LT(peak(5), peak(9));
}

// A swap-out without a wait keeps its bytes while the next node runs.
TEST(LevelSimulator, NeedsLessWhereCopiesAreWaitedFor) {
  StepCase c;
  const Value a = c.make_image("conv", {c.images()}, 8);
  const Value b = c.make_image("conv", {a}, 8);
  const Value d = c.make_image("conv", {b}, 8);
  const Value first = c.make_image("loss_backward", {c.make_image("conv", {d}, 1)}, 1);
  Value dy = first;
  for (const Value& x : {d, b, a}) {
    dy = c.make_image("conv_backward", {dy, x}, 1);
  }
  c.settle(first);
  const auto peak = [&](SyncMode sync) {
    return simulated_peak(c, {.threshold = 1, .ahead = 1, .groupby = 0, .sync = sync});
  };
  EXPECT_EQ(peak(SyncMode::none), std::size_t{24} * image_bytes);
  EXPECT_EQ(peak(SyncMode::in), std::size_t{24} * image_bytes);
  EXPECT_EQ(peak(SyncMode::both), std::size_t{16} * image_bytes);
}

TEST(LevelSimulator, TakesItsShareOfTheArena) {
  StepCase c = chain_step(2);
  c.budget.device = 8 * image_bytes;
  c.options.tflms2.simulated_share = 0.5;
  EXPECT_EQ(simulated_bytes(c.request()), 4 * image_bytes);
  EXPECT_TRUE(play(c, nothing_leaves).passed);
  c.options.tflms2.simulated_share = 3.0 / 8;
  EXPECT_FALSE(play(c, nothing_leaves).passed) << "memory of exactly the peak is too little";
}

// Random steps have views, nodes of several outputs and branches. A tensor that the simulator freed
// twice would wrap the byte count around and fail even with unlimited memory.
TEST(LevelSimulator, PassesAnyStepWithMemoryWithoutEnd) {
  for (unsigned seed = 0; seed < 200; ++seed) {
    StepCase c = tests::random_step(seed);
    c.budget.device = std::size_t{1} << 40U;
    const LevelParameters parameters{.threshold = 1 + seed % 7,
                                     .ahead = 1 + seed % 3,
                                     .groupby = seed % 4,
                                     .sync = static_cast<SyncMode>(seed % 4)};
    const LevelSimulator::Outcome outcome = play(c, parameters);
    EXPECT_TRUE(outcome.passed) << seed;
    EXPECT_LT(outcome.host_bytes, std::size_t{1} << 20U) << seed;
  }
}

}  // namespace
}  // namespace cnn::lms
