#include "lms/decision_changes.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <vector>

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
