#include "lms/evaluate.h"

#include <cstddef>
#include <cstdint>
#include <gtest/gtest.h>
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
