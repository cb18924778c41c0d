#include "lms/decision_changes.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <gtest/gtest.h>
#include <vector>

#include "tests/lms/problem.h"
#include "tests/lms/step_case.h"

namespace cnn::lms {
namespace {

using tests::StepCase;

// Two layers, of which the backward pass reads the second one beside a gradient.
struct TwoLayers {
  TwoLayers() {
    a = c.make("conv", {c.images()});
    b = c.make("conv", {a});
    const Value first = c.make("loss_backward", {c.make("conv", {b})});
    const Value gradient = c.make("conv_backward", {first});
    c.make("relu_backward", {c.make("relu_backward", {gradient, b}), a});
    c.settle(first);
  }
  std::uint32_t root(const PlanningProblem& problem, Value value) const {
    const auto found = std::ranges::find(problem.roots, value.id, &Root::tensor);
    return static_cast<std::uint32_t>(found - problem.roots.begin());
  }
  StepCase c;
  Value a, b;
};

TEST(DecisionChanges, SetTheNearestDecisionThatARootMayHave) {
  const TwoLayers step;
  const PlanningProblem problem = planning_problem(step.c.request());
  const std::uint32_t b = step.root(problem, step.b);
  const auto set = [&](const DecisionChanges::Limits& limits, TensorDecision decision) {
    TensorDecisions decisions(problem.roots.size(), TensorDecision::keep);
    DecisionChanges(problem, limits).set(decisions, b, decision);
    return decisions[b];
  };
  EXPECT_EQ(set({}, TensorDecision::drop_early), TensorDecision::drop_early);
  EXPECT_EQ(set({.drops = false}, TensorDecision::drop_early), TensorDecision::keep);
  EXPECT_EQ(set({.swaps = false}, TensorDecision::swap), TensorDecision::keep);
  EXPECT_EQ(set({}, TensorDecision::swap_often), TensorDecision::swap) << "it has one use";
  EXPECT_EQ(set({}, TensorDecision::drop_always), TensorDecision::drop);
}

TEST(DecisionChanges, FreeWhatIsRecomputedForARoot) {
  const TwoLayers step;
  const PlanningProblem problem = planning_problem(step.c.request());
  const std::uint32_t a = step.root(problem, step.a), b = step.root(problem, step.b);
  const DecisionChanges changes(problem, {});
  TensorDecisions decisions(problem.roots.size(), TensorDecision::keep);
  decisions[b] = TensorDecision::swap;
  EXPECT_EQ(changes.with_sources(decisions, b, TensorDecision::drop_early)[a],
            TensorDecision::keep);
  decisions[a] = TensorDecision::drop;
  const TensorDecisions changed = changes.with_sources(decisions, b, TensorDecision::drop_early);
  EXPECT_EQ(changed[a], TensorDecision::drop_often);
  EXPECT_EQ(changed[b], TensorDecision::drop_early);
}

// The source of a root that is freed at once may itself have one that is not.
TEST(DecisionChanges, FreeTheSourcesOfSources) {
  tests::Problem chain = tests::uniform_chain(4);
  const PlanningProblem problem = planning_problem(chain.request());
  const DecisionChanges changes(problem, {});
  const std::vector<std::uint32_t>& maps = changes.movable();
  ASSERT_GE(maps.size(), 3U);
  using enum TensorDecision;
  TensorDecisions decisions(problem.roots.size(), keep);
  decisions[maps[0]] = drop;
  decisions[maps[1]] = drop_often;
  const TensorDecisions changed = changes.with_sources(decisions, maps[2], drop);
  EXPECT_EQ(changed[maps[1]], drop_often);
  EXPECT_EQ(changed[maps[0]], drop_often);
}

// Changes one plan of a residual chain many times: its articulation points but one in four are
// dropped, and all that lies between them.
TEST(DecisionChanges, ChangeCheckpointsAndWholeBlocks) {
  const PlanningProblem problem = planning_problem(tests::residual_chain(16).request());
  DecisionChanges changes(problem, {});
  const std::vector<std::uint32_t>& points = changes.articulation_points();
  TensorDecisions plan(problem.roots.size(), TensorDecision::keep);
  for (const std::uint32_t r : changes.movable()) {
    changes.set(plan, r, TensorDecision::drop);
  }
  for (std::size_t i = 3; i < points.size(); i += 4) {
    plan[points[i]] = TensorDecision::keep;
  }
  std::size_t moved = 0, blocks = 0;
  for (int attempt = 0; attempt < 2000; ++attempt) {
    const TensorDecisions now = changes.exchanged(plan);
    std::vector<std::uint32_t> differing;
    for (std::uint32_t r = 0; r < now.size(); ++r) {
      if (now[r] != plan[r]) {
        differing.push_back(r);
      }
    }
    const bool is_pair = differing.size() == 2 && now[differing[0]] == plan[differing[1]] &&
                         now[differing[1]] == plan[differing[0]];
    const auto first = std::ranges::find(points, differing.empty() ? 0 : differing.front());
    moved += is_pair && first + 1 < points.end() && *(first + 1) == differing[1] ? 1 : 0;
    blocks += differing.size() == 8 &&
                      std::ranges::all_of(differing,
                                          [&](std::uint32_t r) {
                                            return now[r] == TensorDecision::drop_often &&
                                                   !std::ranges::binary_search(points, r);
                                          })
                  ? 1
                  : 0;
  }
  EXPECT_GT(moved, 10U) << "checkpoints that moved to their neighbours";
  EXPECT_GT(blocks, 0U) << "four blocks whose tensors are all recomputed in another way";
}

TEST(DecisionChanges, LeaveFixedRootsAsTheyAre) {
  const TwoLayers step;
  const PlanningProblem problem = planning_problem(step.c.request());
  const std::uint32_t a = step.root(problem, step.a), b = step.root(problem, step.b);
  std::vector<std::uint8_t> fixed(problem.roots.size());
  fixed[a] = 1;
  DecisionChanges changes(problem, {.fixed = fixed});
  EXPECT_FALSE(changes.is_movable(a));
  EXPECT_TRUE(changes.is_movable(b));
  const TensorDecisions before(problem.roots.size(), TensorDecision::keep);
  std::size_t differing = 0;
  for (int i = 0; i < 100; ++i) {
    for (const TensorDecisions& after : {changes.changed(before), changes.exchanged(before)}) {
      EXPECT_EQ(after[a], TensorDecision::keep);
      differing += after == before ? 0 : 1;
    }
  }
  EXPECT_GT(differing, 50U);
}

}  // namespace
}  // namespace cnn::lms
