#include "lms/expanded_schedule.h"

#include <gtest/gtest.h>
#include <random>
#include <vector>

#include "lms/evaluate.h"
#include "lms/plan_schedule.h"
#include "lms/planning_problem.h"
#include "runtime/error.h"
#include "tests/lms/random_decisions.h"
#include "tests/lms/random_step.h"
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

// The root's parts are a and b; the graph computes s from a, and b from s.
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
  EXPECT_EQ(taken(TensorDecision::swap), 0U)
      << "the swap-out starts after the step that would reuse the bytes";
}

// A backward step reads `a` and what another one before it makes.
TEST(ScheduleExpander, RecomputesEarlyBeforeTheOtherOperandIsThere) {
  StepCase c;
  const Value a = c.make("conv", {c.images()});
  const Value first = c.make("loss_backward", {c.make("conv", {a})});
  const Value gradient = c.make("conv_backward", {first});
  c.make("relu_backward", {gradient, a});
  c.settle(first);
  const PlanningProblem problem = planning_problem(c.request());
  ScheduleExpander expander(problem);
  const auto precedes = [&](TensorDecision decision) {
    for (const ExpandedStep& step : expander.expand(decisions_of(problem, {a}, decision)).steps) {
      if (step.again) {
        return problem.steps[step.given].id;
      }
    }
    return ~std::uint32_t{0};
  };
  EXPECT_EQ(precedes(TensorDecision::drop), 4U) << "its use";
  EXPECT_EQ(precedes(TensorDecision::drop_early), 3U) << "the node that makes the gradient";
}

// The first and the last of three backward steps read `a`.
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
  EXPECT_EQ(often[1].first, often[0].last + 2) << "a step between them does not hold the tensor";
  EXPECT_EQ(often[1].earliest, often[0].last + 1);
}

// A tensor whose bytes may stay between two uses is copied back once, though it may leave twice.
TEST(Unroll, CopiesBackTwiceOnlyWhereTheTensorCannotStay) {
  const UsedApart step;
  const lms::Request request = step.c.request();
  const PlanningProblem problem = planning_problem(request);
  ScheduleExpander expander(problem);
  const ExpandedSchedule& expanded =
      expander.expand(decisions_of(problem, {step.a}, TensorDecision::swap_often));
  const std::size_t room = std::size_t{1} << 20U;
  for (const std::size_t device_bytes : {room, std::size_t{0}}) {
    Evaluator evaluator(problem, device_bytes);
    evaluator.evaluate(expanded);
    EXPECT_EQ(evaluator.swap_ins().size(), device_bytes > 0 ? 1U : 2U);
    const Schedule schedule = schedule_of(request, problem, expanded, evaluator);
    EXPECT_EQ(step.c.outcome(schedule), step.c.outcome(step.c.schedule)) << device_bytes;
  }
}

// Returns everything of an expanded schedule as numbers.
std::vector<double> numbers_of(const ExpandedSchedule& expanded) {
  std::vector<double> numbers{expanded.seconds, static_cast<double>(expanded.backward)};
  const auto add = [&](auto... values) { (numbers.push_back(static_cast<double>(values)), ...); };
  for (const ExpandedStep& one : expanded.steps) {
    add(one.kind, one.id, one.given, one.again);
  }
  for (const LiveInterval& one : expanded.intervals) {
    add(one.root, one.first, one.last, one.written, one.earliest, one.leaves, one.returns);
  }
  for (const InPlaceReuse& one : expanded.reused_in_place) {
    add(one.step, one.bytes, one.from);
  }
  return numbers;
}

// Returns the schedule for these decisions, or nothing where they cannot be obeyed.
std::vector<double> expanded_by(ScheduleExpander& expander, const TensorDecisions& decisions) {
  try {
    return numbers_of(expander.expand(decisions));
  } catch (const Error&) {
    return {};
  }
}

// Walks through random decisions and compares each schedule with that of a new expander.
void walk(const PlanningProblem& problem, std::mt19937& random, bool within_pass) {
  ScheduleExpander expander(problem);
  TensorDecisions current(problem.roots.size(), TensorDecision::keep);
  for (int move = 0; move < 60; ++move) {
    TensorDecisions next = current;
    for (std::size_t change = 0; change <= random() % 3; ++change) {
      tests::change_one(next, problem, random, within_pass);
    }
    ScheduleExpander fresh(problem);
    const std::vector<double> expected = expanded_by(fresh, next);
    ASSERT_EQ(expanded_by(expander, next), expected) << move;
    if (expected.empty() || random() % 3 == 0) {
      continue;
    }
    current = next;
    if (random() % 2 == 0) {
      expander.rebase(current);
      ASSERT_EQ(expanded_by(expander, current), expected) << move;
    }
  }
}

TEST(ScheduleExpander, ResumesAsItWouldStart) {
  for (unsigned seed = 0; seed < 150 && !HasFatalFailure(); ++seed) {
    SCOPED_TRACE(seed);
    StepCase c = tests::random_step(seed);
    c.options.within_pass = seed % 3 == 0;
    std::mt19937 random(seed);
    walk(planning_problem(c.request()), random, c.options.within_pass);
  }
}

}  // namespace
}  // namespace cnn::lms
