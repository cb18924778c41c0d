#include <algorithm>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <utility>

#include "lms/policies.h"
#include "lms/summary.h"
#include "tests/lms/chain_step.h"
#include "tests/support/error_of.h"

namespace cnn::lms {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using tests::chain_step;
using tests::error_of;
using tests::lines;
using tests::StepCase;
using tests::texts;

constexpr std::size_t gib = std::size_t{1} << 30U;
constexpr std::int64_t channels_of_a_gib = 16 << 20;

StepCase chosen(std::size_t layers, Tflms2Options options) {
  StepCase c = chain_step(layers);
  c.options.tflms2 = options;
  return c;
}

TEST(Tflms2, LogsAsTheOriginalDidWhereNothingFits) {
  StepCase c = chain_step(8, channels_of_a_gib / 2);
  c.budget = {.device = gib * 11 / 9, .host = 64 * gib};
  c.variable_bytes = 3 * gib / 1024;
  c.options.tflms2.simulated_share = 0.9;
  EXPECT_THAT(
      lines(tflms2(c.request())),
      ElementsAre(
          "Editing model for LMS", "The graph has 32 vertices and 38 edges.",
          "The graph has 3.0 MiB of learning parameters",
          "The largest GPU operation is conv#0 consuming 1.5 GiB",
          "Original categorized topological sort has 18 levels",
          "Searching values for parameters: swapout_threshold, swapin_ahead, swapin_groupby and "
          "sync_mode.",
          "[Simulator] Available memory for simulation: 1.1 GiB (memory ratio: 0.9)",
          "[Simulator] Available CPU memory for simulation: 64.0 GiB",
          "LMS will use the latest parameter set found by Simulator for the best performance. "
          "However, if you encounter an out-of-memory error, please manually use the previous "
          "parameter set found by Simulator.",
          "  sync_mode: 3 (Synchronous memory copy between host and device)",
          "  swapout_threshold: 1", "  swapin_ahead: -1 (ignored since sync_mode is 3)",
          "  swapin_groupby: -1 (ignored since sync_mode is 3)",
          "Added 14 operations to the model (7 swap-out operations (3.5 GiB) and 7 swap-in "
          "operations (3.5 GiB))",
          "Editing model for LMS, took: {} ms"));
}

TEST(Tflms2, IsTurnedOffWhereItIsNotNecessary) {
  StepCase c = chain_step(8);
  const Plan plan = tflms2(c.request());
  EXPECT_EQ(lines(plan).back(), "LMS is not necessary. Turned LMS off.");
  EXPECT_EQ(texts(*c.graph, plan.schedule), texts(*c.graph, c.schedule));
  c.options.tflms2.swapout_threshold = 2;
  EXPECT_THAT(lines(tflms2(c.request())), Not(Contains("LMS is not necessary. Turned LMS off.")))
      << "the caller requests swaps";
}

TEST(Tflms2, FindsTheLeastSwappingThatPasses) {
  StepCase c = chain_step(40);
  c.budget.device = std::size_t{64} * 30;
  const Plan plan = tflms2(c.request());
  EXPECT_THAT(lines(plan), Contains("[Simulator] Found a parameter set: swapout_threshold 56, "
                                    "swapin_ahead 26, swapin_groupby 82, sync_mode 0"));
  EXPECT_THAT(lines(plan), Contains("  swapout_threshold: 56"));
  EXPECT_THAT(lines(plan), Contains("  swapin_ahead: 26"));
  EXPECT_THAT(lines(plan), Contains("  swapin_groupby: 82"));
  EXPECT_THAT(lines(plan),
              Contains("  sync_mode: 0 (Asynchronous memory copy between host and device)"));
  EXPECT_LE(c.peak(plan.schedule).device_bytes, c.budget.device);
}

// The simulator counts no workspaces, so it finds that no tensor needs to leave.
TEST(Tflms2, FindsAThresholdThatFitsBesideWorkspaces) {
  StepCase c = chain_step(40);
  const std::size_t workspace = std::size_t{64} * 60;
  for (KernelSpec& spec : c.specs) {
    spec.workspace = workspace;
  }
  c.budget.device = workspace + std::size_t{64} * 20;
  const Plan plan = tflms2(c.request());
  EXPECT_LE(c.peak(plan.schedule).device_bytes, c.budget.device);
  EXPECT_EQ(c.outcome(plan.schedule), c.outcome(c.schedule));
  const auto found = [](const std::string& line) {
    return line.starts_with("The simulator counts no workspaces. Found by placing");
  };
  EXPECT_EQ(std::ranges::count_if(lines(plan), found), 1);
}

TEST(Tflms2, FindsWhatFitsForEachBudgetThatAGivenThresholdMeets) {
  StepCase c = chain_step(12);
  for (KernelSpec& spec : c.specs) {
    spec.workspace = 640;
  }
  const std::size_t levels = 28;
  std::size_t met = 0;
  for (std::int64_t threshold = 1; std::cmp_less(threshold, levels); ++threshold) {
    c.budget.device = 1U << 30U;
    c.options.tflms2 = {.swapout_threshold = threshold, .swapin_ahead = 1, .swapin_groupby = 0};
    const Plan by_hand = tflms2(c.request());
    c.budget.device = c.peak(by_hand.schedule).device_bytes;
    c.options.tflms2 = {};
    EXPECT_LE(c.peak(tflms2(c.request()).schedule).device_bytes, c.budget.device) << threshold;
    met += c.budget.device < c.peak(c.schedule).device_bytes ? 1 : 0;
  }
  EXPECT_GT(met, 10U);
}

TEST(Tflms2, KeepsWhatIsGivenWhereItPlacesTheStep) {
  StepCase c = chain_step(40);
  const std::size_t workspace = std::size_t{64} * 60;
  for (KernelSpec& spec : c.specs) {
    spec.workspace = workspace;
  }
  c.options.tflms2.swapin_ahead = 10;
  c.budget.device = workspace + std::size_t{64} * 20;
  const Plan plan = tflms2(c.request());
  EXPECT_LE(c.peak(plan.schedule).device_bytes, c.budget.device);
  EXPECT_THAT(lines(plan), Contains("  swapin_ahead: 10"));
}

TEST(Tflms2, WaitsForCopiesOnlyWhereItMust) {
  StepCase c = chain_step(40);
  const auto sync_at = [&](std::size_t images) {
    c.budget.device = images * 64 + 1;
    for (const std::string& line : lines(tflms2(c.request()))) {
      if (line.starts_with("  sync_mode")) {
        return line.substr(13, 1);
      }
    }
    return std::string();
  };
  EXPECT_EQ(sync_at(5), "0");
  EXPECT_EQ(sync_at(4), "0");
  EXPECT_EQ(sync_at(3), "2") << "no swap-in fits next to the operands of the gradients";
  EXPECT_EQ(sync_at(2), "3");
  c.options.sync_mode = SyncMode::in;
  c.options.tflms2.swapout_threshold = 1;
  EXPECT_THAT(lines(tflms2(c.request())),
              Contains("  sync_mode: 2 (Asynchronous memory copy from device to host, but "
                       "synchronous memory copy from host to device)"));
}

TEST(Tflms2, LetsTensorsLeaveForReadersBeyondTheThreshold) {
  const StepCase c = chosen(3, {.swapout_threshold = 3, .swapin_ahead = 1, .swapin_groupby = 0});
  const Plan plan = tflms2(c.request());
  EXPECT_THAT(texts(*c.graph, plan.schedule),
              ElementsAre("conv#0", "conv#1", "offload conv#0", "conv#2", "loss_backward#3",
                          "fetch conv#0 <4", "conv_backward_weights#4", "descend#5",
                          "conv_backward_data#6", "conv_backward_weights#7", "descend#8",
                          "conv_backward_data#9", "conv_backward_weights#10", "descend#11"));
  EXPECT_THAT(lines(plan), Contains("LMS will use the following parameter set:"));
}

TEST(Tflms2, BringsBackWhenTheRestIsThereWhereNothingTriggers) {
  const StepCase c = chosen(3, {.swapout_threshold = 2, .swapin_ahead = 90, .swapin_groupby = 0});
  EXPECT_THAT(
      texts(*c.graph, tflms2(c.request()).schedule),
      ElementsAre("conv#0", "conv#1", "offload conv#0", "conv#2", "offload conv#1",
                  "loss_backward#3", "fetch conv#1 <5", "conv_backward_weights#4", "descend#5",
                  "conv_backward_data#6", "fetch conv#0 <9", "conv_backward_weights#7", "descend#8",
                  "conv_backward_data#9", "conv_backward_weights#10", "descend#11"));
}

// Two backward nodes, four levels apart, read a.
TEST(Tflms2, SharesCopiesBackWithinAGroup) {
  StepCase c;
  const Value a = c.make("conv", {c.images(), c.weights(1)});
  Value y = a;
  for (int n = 0; n < 3; ++n) {
    y = c.make("relu", {y});
  }
  const Value first = c.make("loss_backward", {y});
  Value dy = c.make("conv_backward_data", {first, a});
  for (int n = 0; n < 3; ++n) {
    dy = c.make("relu_backward", {dy});
  }
  c.make("conv_backward_weights", {dy, a});
  c.settle(first);
  const auto edited = [&](std::int64_t groupby) {
    c.options.tflms2 = {.swapout_threshold = 2, .swapin_ahead = 1, .swapin_groupby = groupby};
    return tflms2(c.request());
  };
  for (const std::int64_t apart : {0, 1, 3}) {
    const Plan plan = edited(apart);
    EXPECT_THAT(lines(plan), Contains(HasSubstr("2 swap-in operations"))) << apart;
    const Summary summary = summarize(*c.graph, plan.schedule);
    EXPECT_EQ(summary.swap_outs, 1U) << "the tensor is swapped out once";
    EXPECT_EQ(summary.swap_ins, 2U) << apart;
    EXPECT_EQ(c.outcome(plan.schedule), c.outcome(c.schedule));
  }
  EXPECT_THAT(lines(edited(4)), Contains(HasSubstr("1 swap-in operations")));
  EXPECT_EQ(summarize(*c.graph, edited(4).schedule).swap_ins, 1U);
}

TEST(Tflms2, TakesMoreMemoryWithMoreLead) {
  StepCase c = chain_step(40);
  std::size_t before = 0;
  for (const std::int64_t ahead : {1, 2, 4, 8, 16, 32}) {
    c.options.tflms2 = {.swapout_threshold = 1, .swapin_ahead = ahead, .swapin_groupby = 0};
    const std::size_t peak = c.peak(tflms2(c.request()).schedule).device_bytes;
    EXPECT_GE(peak, before) << ahead;
    before = peak;
  }
  EXPECT_GT(before, std::size_t{64} * 20);
}

TEST(Tflms2, TakesMoreMemoryWithAHigherThreshold) {
  StepCase c = chain_step(40);
  std::size_t before = 0;
  for (const std::int64_t threshold : {1, 10, 20, 40, 80}) {
    c.options.tflms2 = {.swapout_threshold = threshold, .swapin_ahead = 1, .swapin_groupby = 0};
    const std::size_t peak = c.peak(tflms2(c.request()).schedule).device_bytes;
    EXPECT_GT(peak, before) << threshold;
    before = peak;
  }
  EXPECT_EQ(before, c.peak(c.schedule).device_bytes);
}

TEST(Tflms2, SaysWhatTheHostDoesNotHold) {
  StepCase c = chain_step(20);
  c.budget.device = std::size_t{64} * 12;
  c.budget.host = 64;
  EXPECT_THAT(lines(tflms2(c.request())),
              Contains(HasSubstr("sync_mode 0 (Warning: likely to exceed host memory limit. 0.0 "
                                 "GiB required)")));
}

TEST(Tflms2, LogsEachTensorWhereAskedTo) {
  const StepCase c = chosen(3, {.swapout_threshold = 3, .swapin_ahead = 1, .swapin_groupby = 0});
  const std::vector<std::string> log = lines(tflms2(c.request()), 1);
  EXPECT_THAT(log, Contains("Operation: conv#0"));
  EXPECT_THAT(log, Contains("  Swap-out: Tensor conv#0:0 (shape: [2, 1, 1, 8])"));
  EXPECT_THAT(log, Contains("    Connect: conv#0:0 => conv_backward_weights#7"));
}

TEST(Tflms2, KeepsVectors) {
  StepCase c;
  const Value a = c.make_all("batch_norm", {c.images()}, {{.shape = {8}}}).front();
  const Value first = c.make("loss_backward", {c.make("relu", {c.images(2)})});
  c.make("batch_norm_backward", {c.make("relu", {first}), a});
  c.settle(first);
  c.options.tflms2 = {.swapout_threshold = 1, .swapin_ahead = 1, .swapin_groupby = 0};
  EXPECT_FALSE(summarize(*c.graph, tflms2(c.request()).schedule).moves());
}

TEST(Tflms2, RefusesZero) {
  EXPECT_THAT(error_of([] { tflms2(chosen(2, {.swapout_threshold = 0}).request()); }),
              HasSubstr("swapout_threshold is 0"));
  EXPECT_THAT(error_of([] { tflms2(chosen(2, {.swapin_ahead = 0}).request()); }),
              HasSubstr("swapin_ahead is 0"));
}

TEST(Tflms2, IsOffWithoutTensors) {
  StepCase c = chosen(5, {.swapout_threshold = 1, .swapin_ahead = 1, .swapin_groupby = 1});
  c.options.n_tensors = 0;
  c.options.sync_mode = SyncMode::both;
  EXPECT_EQ(texts(*c.graph, tflms2(c.request()).schedule), texts(*c.graph, c.schedule));
}

}  // namespace
}  // namespace cnn::lms
