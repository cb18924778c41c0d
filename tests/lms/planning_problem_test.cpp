#include "lms/planning_problem.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <gtest/gtest.h>
#include <string>
#include <vector>

#include "tests/lms/chain_step.h"
#include "tests/lms/problem.h"
#include "tests/lms/step_case.h"
#include "tests/support/test_ops.h"

namespace cnn::lms {
namespace {

using tests::StepCase;
using tests::uniform_chain;
using tests::unit;

std::size_t root_index(const PlanningProblem& problem, TensorId tensor) {
  const auto found = std::ranges::find(problem.roots, tensor, &Root::tensor);
  EXPECT_NE(found, problem.roots.end());
  return static_cast<std::size_t>(found - problem.roots.begin());
}

std::vector<bool> may_leave(const PlanningProblem& problem) {
  std::vector<bool> result;
  for (const Root& root : problem.roots) {
    result.push_back(root.may_leave);
  }
  return result;
}

TEST(PlanningProblem, HasARootForEachActivationWithItsMakers) {
  tests::Problem chain = uniform_chain(2);
  chain.limit(2, 3, 4);
  chain.costs.copy_latency = 0.125;
  const PlanningProblem problem = planning_problem(chain.request());
  ASSERT_EQ(problem.roots.size(), 4U) << "two stashes and two gradients, but not the variable";
  EXPECT_EQ(problem.roots[0].bytes, unit);
  EXPECT_EQ(problem.roots[0].makers, std::vector<std::uint32_t>{0});
  EXPECT_EQ(problem.roots[2].bytes, 0U);
  EXPECT_EQ(problem.backward, 2U);
  EXPECT_EQ(problem.steps.size(), 5U) << "four nodes and the copy of the output";
  EXPECT_EQ(problem.out_bytes_per_second, 3 * unit);
  EXPECT_EQ(problem.in_bytes_per_second, 4 * unit);
  EXPECT_EQ(problem.copy_latency, 0.125);
  EXPECT_EQ(problem.nodes[1].seconds, 1);
  EXPECT_EQ(problem.nodes[2].seconds, 2);
}

TEST(PlanningProblem, ListsEachRootThatANodeTouchesOnce) {
  StepCase c;
  const Value a = c.make("conv", {c.images()});
  const Value both = c.make("add", {a, a});
  c.settle(c.make("loss_backward", {both}));
  const PlanningProblem problem = planning_problem(c.request());
  const auto root = static_cast<std::uint32_t>(root_index(problem, a.id));
  EXPECT_EQ(problem.nodes[1].reads, std::vector<std::uint32_t>{root});
  EXPECT_EQ(problem.nodes[0].writes, std::vector<std::uint32_t>{root});
}

TEST(PlanningProblem, CountsATensorInsideAnotherWithThatOne) {
  StepCase c;
  const Value a = c.make("conv", {c.images()});
  const Value b = c.make("conv", {c.images()});
  const Value whole = c.make_image("concat", {a, b}, 2);
  const Value first = c.make("loss_backward", {whole});
  c.make("concat_backward", {first, whole});
  c.graph->place_inside(a.id, whole.id, 0);
  c.graph->place_inside(b.id, whole.id, 1);
  c.settle(first);
  const PlanningProblem problem = planning_problem(c.request());
  const auto roots_at = [&](TensorId tensor) {
    return std::ranges::count(problem.roots, tensor, &Root::tensor);
  };
  EXPECT_EQ(roots_at(a.id), 0);
  EXPECT_EQ(roots_at(whole.id), 1);
  EXPECT_EQ(problem.roots[root_index(problem, whole.id)].makers,
            (std::vector<std::uint32_t>{0, 1, 2}));
}

TEST(PlanningProblem, LetsLeaveWhatTheBackwardPassNeeds) {
  tests::Problem chain = uniform_chain(3);
  const PlanningProblem problem = planning_problem(chain.request());
  for (std::size_t layer = 0; layer < 3; ++layer) {
    EXPECT_TRUE(problem.roots[layer].may_leave) << layer;
    EXPECT_TRUE(problem.roots[layer].may_drop) << layer;
    EXPECT_TRUE(problem.roots[layer].needed_backward) << layer;
  }
  EXPECT_FALSE(problem.roots.back().may_leave) << "the backward pass makes it";
}

TEST(PlanningProblem, LetsOnlyTheForwardPassRunAgain) {
  const StepCase c = tests::chain_step(2);
  const PlanningProblem problem = planning_problem(c.request());
  std::vector<std::string> again;
  for (std::size_t node = 0; node < problem.nodes.size(); ++node) {
    if (problem.nodes[node].may_repeat) {
      again.push_back(std::to_string(node));
    }
  }
  EXPECT_EQ(again, (std::vector<std::string>{"0", "1"})) << "two convolutions; no update";
}

TEST(PlanningProblem, LetsSoManyLeaveTheLargestFirst) {
  StepCase c;
  const Value small = c.make("conv", {c.images()});
  const Value large = c.make_image("conv", {small}, 4);
  const Value first = c.make("loss_backward", {large});
  c.make("conv_backward", {first, small, large});
  c.settle(first);
  c.options.n_tensors = 1;
  const PlanningProblem problem = planning_problem(c.request());
  const std::vector<bool> leaves = may_leave(problem);
  EXPECT_EQ(std::ranges::count(leaves, true), 1);
  EXPECT_TRUE(problem.roots[root_index(problem, large.id)].may_leave);
}

TEST(PlanningProblem, ListsTheInputsWhoseBytesAnOutputMayTake) {
  StepCase c;
  const Value a = c.make("conv", {c.images()});
  const Value b = c.make("relu", {a}, /*in_place=*/true);
  const Value first = c.make("loss_backward", {b});
  c.settle(first);
  const PlanningProblem problem = planning_problem(c.request());
  ASSERT_EQ(problem.nodes[1].may_reuse.size(), 1U);
  EXPECT_EQ(problem.nodes[1].may_reuse.front().from, root_index(problem, a.id));
  EXPECT_EQ(problem.nodes[1].may_reuse.front().to, root_index(problem, b.id));
  EXPECT_TRUE(problem.nodes[0].may_reuse.empty());
}

TEST(PlanningProblem, AddsAlignedWorkspaces) {
  StepCase c;
  const Value a = c.make("conv", {c.images()});
  c.settle(c.make("loss_backward", {a}), /*workspace=*/unit + 1);
  EXPECT_EQ(planning_problem(c.request()).nodes[0].workspace, 2 * unit);
}

// Converted weights are read after the update of the weights that they were made of; so is what
// was made of them. The gradient that reads `early` precedes the update.
TEST(PlanningProblem, LetsNoTensorDropThatIsReadAfterAnUpdateOfItsSources) {
  StepCase c;
  const Value w = c.weights(1);
  const Value converted = c.make("convert", {w});
  const Value early = c.make("conv", {c.images(), converted});
  const Value late = c.make("relu", {early});
  const Value other = c.make("relu", {c.images()});
  const Value first = c.make("loss_backward", {c.make("add", {late, other}), early});
  emit(tests::Descend(), {w, c.make_all("dw", {first}, {w.desc()}).front()});
  c.make("dx", {first, converted, late, other});
  c.settle(first);
  c.options.size_threshold = 0;
  const PlanningProblem problem = planning_problem(c.request());
  const auto root = [&](const Value& value) {
    return problem.roots[root_index(problem, value.id)];
  };
  EXPECT_TRUE(root(late).may_leave);
  EXPECT_FALSE(root(converted).may_drop);
  EXPECT_FALSE(root(late).may_drop);
  EXPECT_TRUE(root(early).may_drop);
  EXPECT_TRUE(root(other).may_drop);
}

}  // namespace
}  // namespace cnn::lms
