// Property tests of every policy on many random steps.

#include <gtest/gtest.h>

#include "lms/catalog.h"
#include "lms/summary.h"
#include "tests/lms/random_step.h"

namespace cnn::lms {
namespace {

using tests::lines;
using tests::random_step;
using tests::StepCase;
using tests::texts;

class EveryPolicy : public ::testing::TestWithParam<PolicyRow> {};

INSTANTIATE_TEST_SUITE_P(Lms, EveryPolicy, ::testing::ValuesIn(policies()),
                         [](const auto& row) { return std::string(row.param.name); });

// The search of `planned` is slow, so it gets fewer seeds.
unsigned seeds_of(const PolicyRow& row) { return row.name == "planned" ? 4 : 120; }

TEST_P(EveryPolicy, ChangesNoBit) {
  std::size_t moved = 0;
  for (unsigned seed = 0; seed < seeds_of(GetParam()); ++seed) {
    StepCase c = random_step(seed);
    SCOPED_TRACE(seed);
    c.options.sync_mode = static_cast<SyncMode>(seed % 4);
    c.options.recompute = static_cast<Recomputation>(seed / 4 % 4);
    c.budget.device = c.peak(c.schedule).device_bytes * (5 + seed % 6) / 10;
    const Plan plan = GetParam().plan(c.request());
    moved += summarize(*c.graph, plan.schedule).moves() ? 1 : 0;
    ASSERT_EQ(c.outcome(plan.schedule), c.outcome(c.schedule));
  }
  EXPECT_TRUE(moved > seeds_of(GetParam()) / 4 || GetParam().name == "none") << moved;
}

TEST_P(EveryPolicy, IsAFunctionOfTheRequest) {
  for (unsigned seed = 200; seed < 200 + seeds_of(GetParam()) / 4; ++seed) {
    StepCase c = random_step(seed), same = random_step(seed);
    c.budget.device = same.budget.device = c.peak(c.schedule).device_bytes * 7 / 10;
    const Plan plan = GetParam().plan(c.request()), again = GetParam().plan(same.request());
    EXPECT_EQ(texts(*c.graph, plan.schedule), texts(*same.graph, again.schedule)) << seed;
    EXPECT_EQ(lines(plan, 2), lines(again, 2)) << seed;
  }
}

}  // namespace
}  // namespace cnn::lms
