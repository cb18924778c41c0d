#include "lms/swap_out_waits.h"

#include <algorithm>
#include <gtest/gtest.h>

#include "lms/catalog.h"
#include "lms/plan_schedule.h"
#include "lms/policies.h"
#include "lms/summary.h"
#include "tests/lms/chain_step.h"
#include "tests/lms/random_step.h"

namespace cnn::lms {
namespace {

using tests::chain_step;
using tests::random_step;
using tests::StepCase;
using tests::texts;

Outcome outcome_of_plan(const StepCase& c, const Plan& plan) {
  return outcome_of(c.request(), plan.schedule, plan.enough);
}

// Returns a chain whose first images leave over a slow link: each copy takes as long as three
// nodes, so copies queue up. The loss takes so long that all copies have ended when the backward
// pass begins.
StepCase chain_behind_a_slow_link() {
  constexpr std::size_t layers = 12;
  StepCase c = chain_step(layers);
  std::ranges::fill(c.costs.seconds, 1.0);
  c.costs.seconds[layers] = 50;
  c.options.n_tensors = 8;
  c.costs.out_bytes_per_second = 64.0 / 3;
  c.costs.in_bytes_per_second = 64;
  return c;
}

TEST(SwapOutWaits, LetNoStepWaitForACopyWhileMemoryIsIdle) {
  StepCase c = chain_behind_a_slow_link();
  c.budget.device = c.peak(c.schedule).device_bytes - 64;
  const Plan policy = tflms1(c.request());
  const Plan waiting = with_swap_out_waits(c.request(), policy);
  const Outcome before = outcome_of_plan(c, policy), after = outcome_of_plan(c, waiting);
  EXPECT_LT(after.seconds, before.seconds);
  EXPECT_LE(after.device_bytes, c.budget.device);
  EXPECT_GT(after.device_bytes, before.device_bytes);
  EXPECT_EQ(c.outcome(waiting.schedule), c.outcome(c.schedule));
  EXPECT_EQ(summarize(*c.graph, waiting.schedule).swap_outs,
            summarize(*c.graph, policy.schedule).swap_outs);
}

TEST(SwapOutWaits, GainMoreTheMoreMemoryThereIs) {
  StepCase c = chain_behind_a_slow_link();
  const std::size_t need = c.peak(c.schedule).device_bytes;
  double before = outcome_of_plan(c, tflms1(c.request())).seconds;
  std::size_t faster = 0;
  for (std::size_t tenths = 6; tenths <= 10; ++tenths) {
    c.budget.device = need * tenths / 10;
    const double now =
        outcome_of_plan(c, with_swap_out_waits(c.request(), tflms1(c.request()))).seconds;
    EXPECT_LE(now, before + 1e-9) << tenths;
    faster += now < before ? 1 : 0;
    before = now;
  }
  EXPECT_GE(faster, 3U);
}

TEST(SwapOutWaits, LeaveAloneWhatThePolicyWaitsForAndWhatDoesNotFit) {
  StepCase c = chain_behind_a_slow_link();
  c.budget.device = c.peak(c.schedule).device_bytes - 64;
  const Plan layer_by_layer = vdnn_conv(c.request());
  EXPECT_EQ(texts(*c.graph, with_swap_out_waits(c.request(), layer_by_layer).schedule),
            texts(*c.graph, layer_by_layer.schedule));
  c.budget.device = 64;
  const Plan too_large = tflms1(c.request());
  EXPECT_EQ(texts(*c.graph, with_swap_out_waits(c.request(), too_large).schedule),
            texts(*c.graph, too_large.schedule));
}

TEST(LongSwapOutWaits, MakeNoPlanSlowerOrTooLargeAndChangeNoBit) {
  std::size_t faster = 0;
  for (const PolicyRow& row : policies()) {
    for (unsigned seed = 0; seed < (row.places_waits ? 0 : 60); ++seed) {
      SCOPED_TRACE(std::string(row.name) + " " + std::to_string(seed));
      StepCase c = random_step(seed);
      c.costs.out_bytes_per_second = 20;
      c.options.sync_mode = static_cast<SyncMode>(seed % 4);
      c.budget.device = c.peak(c.schedule).device_bytes * (6 + seed % 4) / 10;
      const Plan policy = row.plan(c.request());
      const Plan waiting = with_swap_out_waits(c.request(), policy);
      const Outcome before = outcome_of_plan(c, policy), after = outcome_of_plan(c, waiting);
      ASSERT_LE(after.seconds, before.seconds);
      ASSERT_LE(after.device_bytes, std::max(before.device_bytes, c.budget.device));
      ASSERT_EQ(c.outcome(waiting.schedule), c.outcome(c.schedule));
      faster += after.seconds < before.seconds ? 1 : 0;
    }
  }
  EXPECT_GT(faster, 30U);
}

}  // namespace
}  // namespace cnn::lms
