#include "lms/expanded_schedule.h"

#include <gtest/gtest.h>
#include <vector>

#include "lms/planning_problem.h"
#include "tests/lms/step_case.h"

namespace cnn::lms {
namespace {

using tests::StepCase;

TensorDecisions decisions_of(const PlanningProblem& problem, const std::vector<Value>& roots,
                             TensorDecision decision) {
  TensorDecisions decisions(problem.roots.size(), TensorDecision::keep);
  for (std::size_t r = 0; r < decisions.size(); ++r) {
    for (const Value& root : roots) {
      decisions[r] = problem.roots[r].tensor == root.id ? decision : decisions[r];
    }
  }
  return decisions;
}

// Its parts are a and b; b is made of s, and s of a.
TEST(ScheduleExpander, MakesAgainOnceWhatStandsBetweenThePartsOfARoot) {
  StepCase c;
  const Value a = c.make("conv", {c.images()});
  const Value s = c.make("relu", {a});
  const Value b = c.make("conv", {s});
  const Value whole = c.make_image("concat", {a, b}, 2);
  const Value first = c.make("loss_backward", {c.make("conv", {whole})});
  c.make("relu_backward", {first, s});
  c.make("concat_backward", {first, whole});
  c.graph->place_inside(a.id, whole.id, 0);
  c.graph->place_inside(b.id, whole.id, 1);
  c.settle(first);
  const PlanningProblem problem = planning_problem(c.request());
  ScheduleExpander expander(problem);
  std::vector<std::uint32_t> again;
  for (const ExpandedStep& step :
       expander.expand(decisions_of(problem, {s, whole}, TensorDecision::drop)).steps) {
    if (step.again) {
      again.push_back(step.id);
    }
  }
  EXPECT_EQ(again, (std::vector<std::uint32_t>{0, 1, 2, 3}));
}

TEST(ScheduleExpander, LetsNoOneHaveTheBytesOfWhatIsCopiedOut) {
  StepCase c;
  const Value a = c.make("conv", {c.images()});
  const Value first = c.make("loss_backward", {c.make("relu", {a}, true)});
  c.make("relu_backward", {first, a});
  c.settle(first);
  const PlanningProblem problem = planning_problem(c.request());
  ScheduleExpander expander(problem);
  const auto taken = [&](TensorDecision decision) {
    return expander.expand(decisions_of(problem, {a}, decision)).taken_over.size();
  };
  EXPECT_EQ(taken(TensorDecision::keep), 0U);
  EXPECT_EQ(taken(TensorDecision::drop), 1U);
  EXPECT_EQ(taken(TensorDecision::swap), 0U) << "it leaves behind the step that would take them";
}

}  // namespace
}  // namespace cnn::lms
