#include "lms/evaluate.h"

#include <cstddef>
#include <cstdint>
#include <gtest/gtest.h>
#include <initializer_list>
#include <optional>
#include <vector>

#include "lms/expanded_schedule.h"
#include "lms/planning_problem.h"
#include "tests/lms/problem.h"

namespace cnn::lms {
namespace {

using tests::unit;

// A chain of four layers. Steps 0..3 make roots 0..3 in one second each; steps 4..7 read them in
// reverse order in two seconds each. Steps 1 and 7 read root 0.
class ChainEvaluation : public ::testing::Test {
 protected:
  void link(double out, double in) { chain_.limit(0, out, in); }

  Evaluator& evaluate(std::size_t device_units, const std::vector<std::size_t>& swapped,
                      SyncMode sync = SyncMode::none) {
    problem_ = planning_problem(chain_.request());
    expander_.emplace(problem_);
    decisions_.assign(problem_.roots.size(), TensorDecision::keep);
    for (const std::size_t root : swapped) {
      decisions_[root] = TensorDecision::swap;
    }
    evaluator_.emplace(problem_, device_units * unit, sync);
    result_ = evaluator_->evaluate(expanded());
    return *evaluator_;
  }
  const ExpandedSchedule& expanded() { return expander_->expand(decisions_); }
  const Evaluation& result() const { return result_; }

 private:
  tests::Problem chain_ = tests::uniform_chain(4);
  PlanningProblem problem_;
  std::optional<ScheduleExpander> expander_;
  TensorDecisions decisions_;
  std::optional<Evaluator> evaluator_;
  Evaluation result_;
};

TEST_F(ChainEvaluation, CountsTheLiveBytesOfEveryStep) {
  const std::vector<std::size_t>& bytes = evaluate(4, {}).bytes();
  std::vector<std::size_t> units;
  for (std::size_t step = 0; step < 8; ++step) {
    units.push_back(bytes[step] / unit);
  }
  EXPECT_EQ(units, (std::vector<std::size_t>{1, 2, 3, 4, 4, 3, 2, 1}));
  EXPECT_EQ(result().peak, 4 * unit);
  EXPECT_EQ(result().seconds, 12);
  EXPECT_TRUE(result().fits);
}

TEST_F(ChainEvaluation, SumsTheExcessOverTheBudget) {
  evaluate(3, {});
  EXPECT_FALSE(result().fits);
  EXPECT_EQ(result().excess, 2.0 * unit) << "steps 3 and 4 exceed the budget by one unit";
}

TEST_F(ChainEvaluation, HidesCopiesBehindCompute) {
  link(1, 1);
  const Evaluator& evaluator = evaluate(3, {0});
  EXPECT_TRUE(result().fits);
  EXPECT_EQ(result().seconds, 12);
  ASSERT_EQ(evaluator.swap_outs().size(), 1U);
  EXPECT_EQ(evaluator.swap_outs().front().freed_for_step, 3U) << "the first step that lacks bytes";
  ASSERT_EQ(evaluator.swap_ins().size(), 1U);
  EXPECT_EQ(evaluator.swap_ins().front().position, 5U)
      << "from this step on the bytes stay free until the use";
}

TEST_F(ChainEvaluation, DelaysTheStepThatNeedsTheBytesOfASlowSwapOut) {
  link(0.25, 1);  // the copy runs from 1 s, when root 0 exists, to 5 s; step 3 would start at 3 s
  evaluate(3, {0});
  EXPECT_EQ(result().seconds, 14);
}

TEST_F(ChainEvaluation, DelaysTheStepThatReadsASlowSwapIn) {
  link(1, 0.2);  // the copy runs from 6 s, when bytes are free, to 11 s; step 7 would start at 10 s
  evaluate(3, {0});
  EXPECT_EQ(result().seconds, 13);
}

TEST_F(ChainEvaluation, HoldsUpComputeForCopiesInSyncModes) {
  link(0.5, 0.5);
  evaluate(3, {0}, SyncMode::out);
  EXPECT_EQ(result().seconds, 13) << "the swap-out ends at 3 s, step 1 at 2 s";
  evaluate(3, {0}, SyncMode::in);
  EXPECT_EQ(result().seconds, 14) << "the swap-in starts at 10 s, when step 6 has ended";
  evaluate(3, {0}, SyncMode::both);
  EXPECT_EQ(result().seconds, 15);
}

TEST_F(ChainEvaluation, EstimatesWithoutWaitsBeyondTheLimit) {
  link(0.25, 1);
  Evaluator& evaluator = evaluate(3, {0});
  EXPECT_EQ(evaluator.estimate(expanded(), 11).seconds, 12) << "the nodes alone take this long";
  EXPECT_EQ(evaluator.estimate(expanded(), 12).seconds, 14);
}

TEST_F(ChainEvaluation, TightensSwapsWithoutMakingTheStepLonger) {
  link(1, 1);
  Evaluator& evaluator = evaluate(3, {0});
  evaluator.tighten(expanded(), 0);
  EXPECT_EQ(evaluator.swap_outs().front().freed_for_step, 2U) << "the swap-out ends at 2 s";
  EXPECT_EQ(evaluator.swap_ins().front().position, 6U)
      << "step 6 starts at 8 s, the last before 9 s";
  evaluate(3, {0}).tighten(expanded(), 2);
  EXPECT_EQ(evaluator.swap_ins().front().position, 5U)
      << "with two seconds of slack it stays at step 5";
}

// A step whose nodes are added one by one, each of one second unless said otherwise.
class BuiltStep {
 public:
  // In units per second, as Problem::limit().
  BuiltStep(double out, double in) : out_(out), in_(in) {}

  Value add(std::int64_t size, std::initializer_list<Value> from, double seconds = 1) {
    step_.add_cost(seconds);
    return emit(tests::Opaque({tests::units(size)}), from);
  }
  Value start() { return step_.graph->state("w", tests::units(0), {}, false); }
  Value input() { return step_.graph->input("labels", tests::units(1)); }

  // Evaluates the step, whose last node makes `gradient`, with these tensors swapped.
  const Evaluation& evaluate(Value gradient, std::size_t forward_nodes, std::size_t device_units,
                             std::initializer_list<Value> swapped) {
    step_.graph->output("gradient", gradient);
    step_.finish(forward_nodes);
    step_.limit(0, out_, in_);
    problem_ = planning_problem(step_.request());
    TensorDecisions decisions(problem_.roots.size(), TensorDecision::keep);
    for (std::size_t r = 0; r < problem_.roots.size(); ++r) {
      for (const Value value : swapped) {
        decisions[r] = problem_.roots[r].tensor == value.id ? TensorDecision::swap : decisions[r];
      }
    }
    expander_.emplace(problem_);
    expanded_ = &expander_->expand(decisions);
    evaluator_.emplace(problem_, device_units * unit);
    return evaluator_->evaluate(*expanded_);
  }
  const ExpandedSchedule& expanded() const { return *expanded_; }
  const Evaluator& evaluator() const { return *evaluator_; }

 private:
  double out_, in_;
  tests::Problem step_;
  PlanningProblem problem_;
  std::optional<ScheduleExpander> expander_;
  const ExpandedSchedule* expanded_ = nullptr;
  std::optional<Evaluator> evaluator_;
};

// Maps of two and four units leave from 1 to 6 s and from there to 16 s. The first one returns to
// bytes of the second one, which leaves two of its units to step 5. That step takes 20 s, and then
// steps 6 and 7 and four seconds of copy follow.
TEST(EvaluatedCopies, LeaveBytesToAStepOnceTheyHaveEnded) {
  BuiltStep step(0.4, 1);
  const Value small = step.add(2, {step.start()});
  const Value large = step.add(4, {small});
  const Value third = step.add(1, {step.add(0, {large})});
  const Value wide = step.add(3, {step.add(0, {third}), third}, 20);
  const Value sixth = step.add(0, {wide, small});
  const Evaluation& found = step.evaluate(step.add(0, {sixth, large}), 3, 6, {small, large});
  EXPECT_TRUE(found.fits);
  EXPECT_DOUBLE_EQ(found.seconds, 16 + 20 + 1 + 4 + 1);
}

// Both are in one lane, and the step that reads the input would wait until all of the map is back.
TEST(EvaluatedCopies, BeginAfterTheFetchOfAnInput) {
  BuiltStep step(1, 1);
  const Value map = step.add(2, {step.start()});
  const Value loss = step.add(0, {step.add(0, {map})});
  const Value first = step.add(0, {loss});
  const Value second = step.add(0, {first, step.input()});
  step.evaluate(step.add(0, {second, map}), 3, 3, {map});
  ASSERT_EQ(step.evaluator().swap_ins().size(), 1U);
  const std::uint32_t position = step.evaluator().swap_ins().front().position;
  ASSERT_GT(position, 0U);
  EXPECT_EQ(step.expanded().steps[position - 1].kind, StepKind::fetch);
}

// All bytes of step 5 are reserved there: the copy back, which would begin at 6 s, waits until that
// step has ended at 8 s.
TEST_F(ChainEvaluation, LeavesReservedBytesFreeOfEarlyCopies) {
  link(1, 0.5);
  Evaluator& evaluator = evaluate(3, {0});
  const std::uint32_t earliest = evaluator.swap_ins().front().position;
  ASSERT_LT(earliest, 6U);
  std::vector<std::size_t> reserved(expanded().steps.size());
  reserved[5] = 3 * unit;
  evaluator.reserve(reserved);
  const Evaluation later = evaluator.evaluate(expanded());
  EXPECT_EQ(evaluator.swap_ins().front().position, 6U);
  EXPECT_TRUE(later.fits) << "the steps themselves may take these bytes";
  evaluator.reserve({});
  evaluator.evaluate(expanded());
  EXPECT_EQ(evaluator.swap_ins().front().position, earliest);
}

}  // namespace
}  // namespace cnn::lms
