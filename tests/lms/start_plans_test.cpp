#include "lms/start_plans.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <gtest/gtest.h>
#include <vector>

#include "lms/decision_changes.h"
#include "lms/planning_problem.h"
#include "tests/lms/problem.h"

namespace cnn::lms {
namespace {

using tests::residual_chain;
using tests::unit;

std::vector<TensorDecision> decisions_of(const TensorDecisions& decisions,
                                         const std::vector<std::uint32_t>& roots) {
  std::vector<TensorDecision> some;
  some.reserve(roots.size());
  for (const std::uint32_t r : roots) {
    some.push_back(decisions[r]);
  }
  return some;
}

std::size_t count(const TensorDecisions& decisions, TensorDecision decision) {
  return static_cast<std::size_t>(std::ranges::count(decisions, decision));
}

class StartPlansTest : public ::testing::Test {
 protected:
  static constexpr int blocks = 8;
  tests::Problem step = residual_chain(blocks);
  PlanningProblem problem = planning_problem(step.request());
  DecisionChanges changes{problem, {}};
  StartPlans plans{problem, changes};
};

TEST_F(StartPlansTest, KeepCheckpointsAtEqualDistances) {
  const TensorDecisions decisions =
      plans.plan({.how = TensorDecision::drop_often, .spacing = 3 * unit}, StartPlans::shares);
  using enum TensorDecision;
  EXPECT_EQ(decisions_of(decisions, changes.articulation_points()),
            (std::vector{drop, drop, drop, keep, drop, drop, drop, keep}));
  EXPECT_EQ(count(decisions, drop_often), 2 * blocks + 1) << "all others, the last output too";
}

TEST_F(StartPlansTest, DropTheRestByRecomputeTimePerByte) {
  const TensorDecisions decisions =
      plans.plan({.how = TensorDecision::drop_often, .spacing = 3 * unit}, StartPlans::shares / 2);
  EXPECT_EQ(count(decisions, TensorDecision::drop_often), blocks);
  for (std::uint32_t r = 0; r < decisions.size(); ++r) {
    if (decisions[r] == TensorDecision::drop_often) {
      EXPECT_LE(problem.nodes[problem.roots[r].makers.front()].seconds, 2) << "not one of 4 s";
    }
  }
}

TEST_F(StartPlansTest, DropAllAlikeWithoutCheckpoints) {
  const TensorDecisions all = plans.plan({.how = TensorDecision::drop}, StartPlans::shares);
  EXPECT_EQ(count(all, TensorDecision::drop), changes.movable().size());
  const TensorDecisions none = plans.plan({.how = TensorDecision::drop}, 0);
  EXPECT_EQ(count(none, TensorDecision::keep), none.size());
}

TEST_F(StartPlansTest, OfferSpacingsOnlyWhereThereAreEnoughPoints) {
  const std::vector<std::size_t> spacings = plans.spacings();
  ASSERT_FALSE(spacings.empty());
  EXPECT_TRUE(std::ranges::is_sorted(spacings, std::greater<>()));
  EXPECT_EQ(spacings.front(), blocks * unit / 4);

  tests::Problem small = residual_chain(2);
  const PlanningProblem other = planning_problem(small.request());
  const DecisionChanges of_other(other, {});
  EXPECT_TRUE(StartPlans(other, of_other).spacings().empty()) << "two outputs of blocks";
}

TEST_F(StartPlansTest, DropNothingThatMayNotBeRecomputed) {
  const DecisionChanges swaps_only(problem, {.drops = false});
  const StartPlans swaps(problem, swaps_only);
  const TensorDecisions decisions =
      swaps.plan({.how = TensorDecision::drop, .spacing = unit}, StartPlans::shares);
  EXPECT_EQ(count(decisions, TensorDecision::keep), decisions.size());
}

}  // namespace
}  // namespace cnn::lms
