#include "lms/disk_tier.h"

#include <algorithm>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <random>
#include <string>
#include <vector>

#include "lms/bound.h"
#include "lms/budget_search.h"
#include "lms/catalog.h"
#include "lms/expanded_schedule.h"
#include "lms/plan_schedule.h"
#include "lms/planning_problem.h"
#include "lms/policies.h"
#include "lms/summary.h"
#include "tests/lms/chain_step.h"
#include "tests/lms/quick_plan.h"

namespace cnn::lms {
namespace {

using tests::chain_step;
using tests::StepCase;
using tests::texts;

constexpr std::size_t page = disk_alignment;  // of each image of the chains below

// Returns a chain of images of one page, with fast copies and a disk that takes half of a node's
// second for each.
StepCase chain_before_a_disk(std::size_t layers = 8) {
  StepCase c = chain_step(layers, 64);
  c.costs.out_bytes_per_second = c.costs.in_bytes_per_second = 100 * page;
  c.costs.store_bytes_per_second = c.costs.load_bytes_per_second = 2 * page;
  c.budget.disk = std::size_t{1} << 30U;
  return c;
}

// Returns the schedule that swaps all images, which take host memory until they are back.
Schedule all_swapped(const StepCase& c) { return vdnn_all(c.request()).schedule; }

std::vector<std::string> names_stored(const StepCase& c, const Schedule& schedule) {
  std::vector<std::string> names;
  for (const Step& step : schedule.steps) {
    if (const auto* store = std::get_if<Store>(&step.action)) {
      names.push_back(c.graph->info(store->tensor).name);
    }
  }
  return names;
}

TEST(DiskTier, LeavesAScheduleAloneThatTheHostHolds) {
  StepCase c = chain_before_a_disk();
  const Schedule all = all_swapped(c);
  c.budget.host = outcome_of(c.request(), all).host_bytes;
  EXPECT_EQ(texts(*c.graph, with_disk_tier(c.request(), all)), texts(*c.graph, all));
}

TEST(DiskTier, LeavesAScheduleAloneWithoutADiskOrRoomOnIt) {
  StepCase c = chain_before_a_disk();
  const Schedule all = all_swapped(c);
  c.budget.host = 3 * page;
  for (const std::size_t disk : {std::size_t{0}, page}) {
    c.budget.disk = disk;
    EXPECT_EQ(texts(*c.graph, with_disk_tier(c.request(), all)), texts(*c.graph, all));
  }
}

TEST(DiskTier, LeavesAScheduleAloneWhereTheHostHoldsNotEvenOneTensor) {
  StepCase c = chain_before_a_disk();
  const Schedule all = all_swapped(c);
  c.budget.host = page - 64;
  EXPECT_EQ(texts(*c.graph, with_disk_tier(c.request(), all)), texts(*c.graph, all));
}

// Tensors pass through the host on their way to the disk.
TEST(DiskTier, TakesNoTensorThatTheHostCannotHold) {
  StepCase c = chain_before_a_disk();
  c.budget.host = page;
  PlanningProblem problem = planning_problem(c.request());
  EXPECT_TRUE(std::ranges::all_of(problem.roots, &Root::may_swap));
  const std::size_t all_away = minimize_memory(c.request(), problem).placed.outcome.device_bytes;
  c.options.recompute = Recomputation::off;
  c.budget.host = page - 64;
  problem = planning_problem(c.request());
  EXPECT_TRUE(std::ranges::none_of(
      problem.roots, [](const Root& root) { return root.may_leave && root.may_swap; }));
  const SearchedPlan none = minimize_memory(c.request(), problem);
  EXPECT_TRUE(std::ranges::none_of(none.decisions, is_swapped));
  EXPECT_GT(none.placed.outcome.device_bytes, all_away);
}

TEST(DiskTier, StoresWhatReturnsLast) {
  StepCase c = chain_before_a_disk();
  const Schedule all = all_swapped(c);
  const std::size_t whole = outcome_of(c.request(), all).host_bytes;
  ASSERT_EQ(whole % page, 0U);
  std::vector<std::string> first;
  for (const Step& step : all.steps) {
    if (const auto* offload = std::get_if<Offload>(&step.action)) {
      first.push_back(c.graph->info(offload->tensor).name);
    }
  }
  for (std::size_t fewer = 1; fewer < whole / page; ++fewer) {
    c.budget.host = whole - fewer * page;
    const Schedule tiered = with_disk_tier(c.request(), all);
    const Outcome outcome = outcome_of(c.request(), tiered);
    EXPECT_LE(outcome.host_bytes, c.budget.host);
    const std::vector<std::string> names = names_stored(c, tiered);
    EXPECT_GE(names.size(), fewer);
    EXPECT_LE(names.size(), fewer + 1);
    EXPECT_TRUE(std::equal(names.begin(), names.end(), first.begin())) << "the first to leave";
    EXPECT_EQ(c.outcome(tiered), c.outcome(c.schedule));
    EXPECT_EQ(c.planned(tiered).memory.disk_bytes, names.size() * page);
  }
}

TEST(DiskTier, HidesTransfersBehindComputingWhereTheHostHasRoom) {
  StepCase c = chain_before_a_disk();
  const Schedule all = all_swapped(c);
  const double unlimited = outcome_of(c.request(), all).seconds;
  c.budget.host = outcome_of(c.request(), all).host_bytes / 2;
  const Schedule tiered = with_disk_tier(c.request(), all);
  EXPECT_GE(names_stored(c, tiered).size(), 3U);
  EXPECT_NEAR(outcome_of(c.request(), tiered).seconds, unlimited, 1e-9);
  c.costs.store_bytes_per_second = c.costs.load_bytes_per_second = page / 16.0;
  EXPECT_GT(outcome_of(c.request(), with_disk_tier(c.request(), all)).seconds, unlimited + 16);
}

TEST(DiskTier, KeepsTheWaitsOfTheSchedule) {
  StepCase c = chain_before_a_disk();
  Schedule all = all_swapped(c);
  c.budget.host = 2 * page;
  const Schedule tiered = with_disk_tier(c.request(), all);
  const StepPlan plan = make_plan(c.graph, c.specs, tiered);
  std::size_t given = 0;
  for (const Step& step : all.steps) {
    given += step.after.size();
  }
  EXPECT_GT(given, 0U);
  EXPECT_NO_THROW(verify(plan, tiered));
  std::vector<Step> kept;
  std::ranges::copy_if(tiered.steps, std::back_inserter(kept),
                       [](const Step& step) { return step.lane != Lane::disk; });
  ASSERT_EQ(kept.size(), all.steps.size());
  for (std::size_t s = 0; s < kept.size(); ++s) {
    EXPECT_EQ(to_string(*c.graph, kept[s].action), to_string(*c.graph, all.steps[s].action));
    EXPECT_GE(kept[s].after.size(), all.steps[s].after.size());
  }
}

// Returns a chain with random costs whose images take some pages and so differ from the units of
// the host and of the disk.
StepCase chain_with_disk(unsigned seed) {
  std::mt19937 random(seed);
  const auto any = [&](std::size_t below) { return random() % below; };
  StepCase c = chain_step(5 + any(6), static_cast<std::int64_t>(40 + any(200)));
  for (double& seconds : c.costs.seconds) {
    seconds = 1 + static_cast<double>(any(8));
  }
  c.costs.out_bytes_per_second = c.costs.in_bytes_per_second = 20'000;
  c.costs.store_bytes_per_second = 1'000 + 1'000 * static_cast<double>(any(4));
  c.costs.load_bytes_per_second = 1'000 + 3'000 * static_cast<double>(any(4));
  c.options.sync_mode = static_cast<SyncMode>(any(4));
  c.budget.disk = std::size_t{1} << 30U;
  c.budget.device = c.peak(c.schedule).device_bytes * (5 + any(4)) / 10;
  return c;
}

// Whatever a policy swaps fits into less host memory with a disk, the bits stay, and the bound is
// not beaten.
TEST(LongDiskTier, ChangesNoBitOfAnyPolicyAndObeysItsBudgetAndBound) {
  std::size_t tiers = 0;
  for (const PolicyRow& row : policies()) {
    for (unsigned seed = 0; seed < 20; ++seed) {
      SCOPED_TRACE(std::string(row.name) + " " + std::to_string(seed));
      StepCase c = chain_with_disk(seed);
      const Schedule schedule = row.name == "planned" ? tests::quick_plan(c.request(), 500).schedule
                                                      : row.plan(c.request()).schedule;
      const Outcome before = outcome_of(c.request(), schedule);
      c.budget.host = before.host_bytes * (3 + seed % 4) / 8;
      const Schedule tiered = with_disk_tier(c.request(), schedule);
      const Outcome after = outcome_of(c.request(), tiered);
      if (after.host_bytes > c.budget.host) {
        continue;  // copies under way take more
      }
      tiers += before.host_bytes > 0 ? 1 : 0;
      ASSERT_EQ(summarize(*c.graph, tiered).stored_tensors > 0, before.host_bytes > 0);
      ASSERT_EQ(after.device_bytes, before.device_bytes);
      ASSERT_EQ(c.outcome(tiered), c.outcome(c.schedule));
      c.budget.device = after.device_bytes;
      ASSERT_LE(lower_bound(c.request()).seconds, after.seconds * (1 + 1e-9));
    }
  }
  EXPECT_GT(tiers, 100U);
}

// Our own policy searches among plans whose tensors go on to the disk.
TEST(LongDiskTier, IsPartOfTheSearch) {
  std::size_t tiers = 0;
  for (unsigned seed = 0; seed < 4; ++seed) {
    SCOPED_TRACE(seed);
    StepCase c = chain_with_disk(seed);
    c.options.recompute = Recomputation::off;
    const Plan free = planned(c.request());
    c.budget.host = outcome_of(c.request(), free.schedule, free.enough).host_bytes / 2;
    const Plan plan = planned(c.request());
    const Outcome outcome = outcome_of(c.request(), plan.schedule, plan.enough);
    if (outcome.device_bytes > c.budget.device || outcome.host_bytes > c.budget.host) {
      continue;  // nothing fits
    }
    tiers += summarize(*c.graph, plan.schedule).stored_tensors > 0 ? 1 : 0;
    EXPECT_EQ(c.outcome(plan.schedule), c.outcome(c.schedule));
    EXPECT_LE(lower_bound(c.request()).seconds, outcome.seconds * (1 + 1e-9));
  }
  EXPECT_GT(tiers, 0U);
}

}  // namespace
}  // namespace cnn::lms
