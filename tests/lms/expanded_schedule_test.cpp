#include "lms/expanded_schedule.h"

#include <gtest/gtest.h>
#include <vector>

#include "lms/evaluate.h"
#include "lms/plan_schedule.h"
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
    return expander.expand(decisions_of(problem, {a}, decision)).reused_in_place.size();
  };
  EXPECT_EQ(taken(TensorDecision::keep), 0U);
  EXPECT_EQ(taken(TensorDecision::drop), 1U);
  EXPECT_EQ(taken(TensorDecision::swap), 0U) << "it leaves behind the step that would take them";
}

// `a` is read by the first and by the last of three backward steps.
struct UsedApart {
  UsedApart() {
    a = c.make("conv", {c.images()});
    const Value first = c.make("loss_backward", {c.make("conv", {a})});
    const Value with_a = c.make("conv_backward", {first, a});
    const Value between = c.make("conv_backward", {with_a});
    c.make("relu_backward", {between, a});
    c.settle(first);
  }
  StepCase c;
  Value a;
};

TEST(Unroll, CopiesBackForEachUseThatStandsApart) {
  const UsedApart step;
  const PlanningProblem problem = planning_problem(step.c.request());
  ScheduleExpander expander(problem);
  const auto intervals = [&](TensorDecision decision) {
    const ExpandedSchedule& expanded = expander.expand(decisions_of(problem, {step.a}, decision));
    std::vector<LiveInterval> returning;
    for (const LiveInterval& interval : expanded.intervals) {
      if (interval.returns) {
        returning.push_back(interval);
      }
    }
    return returning;
  };
  EXPECT_EQ(intervals(TensorDecision::swap).size(), 1U);
  const std::vector<LiveInterval> often = intervals(TensorDecision::swap_often);
  ASSERT_EQ(often.size(), 2U);
  EXPECT_EQ(often[0].first, often[0].last);
  EXPECT_EQ(often[1].first, often[0].last + 2) << "between them is a step without it";
  EXPECT_EQ(often[1].earliest, often[0].last + 1);
}

// The second copy back may not begin while the first is still there, though there is room.
TEST(Unroll, LetsNoCopyBeginWhileTheTensorIsThere) {
  const UsedApart step;
  const lms::Request request = step.c.request();
  const PlanningProblem problem = planning_problem(request);
  ScheduleExpander expander(problem);
  Evaluator evaluator(problem, std::size_t{1} << 20U);
  const ExpandedSchedule& expanded =
      expander.expand(decisions_of(problem, {step.a}, TensorDecision::swap_often));
  evaluator.evaluate(expanded);
  ASSERT_EQ(evaluator.swap_ins().size(), 2U);
  EXPECT_EQ(evaluator.swap_ins()[1].position,
            expanded.intervals[evaluator.swap_ins()[0].interval].last + 1);
  const Schedule schedule = schedule_of(request, problem, expanded, evaluator);
  EXPECT_EQ(step.c.outcome(schedule), step.c.outcome(step.c.schedule));
}

}  // namespace
}  // namespace cnn::lms
