#include "lms/repair_moves.h"

#include <algorithm>
#include <cstddef>
#include <gtest/gtest.h>
#include <queue>
#include <vector>

#include "lms/evaluate.h"
#include "tests/lms/problem.h"

namespace cnn::lms {
namespace {

using tests::unit;

class RepairMoves : public ::testing::Test {
 protected:
  tests::Problem chain = [] {
    tests::Problem result = tests::uniform_chain(6);
    result.limit(0, 1, 1);
    return result;
  }();
  PlanningProblem problem = planning_problem(chain.request());
  DecisionChanges changes{problem, {}};
  TensorDecisions kept = TensorDecisions(problem.roots.size(), TensorDecision::keep);
};

TEST_F(RepairMoves, ChangeOneDecisionEach) {
  const std::vector<RepairMove> moves = repair_moves(changes, kept);
  EXPECT_GE(moves.size(), 2 * changes.movable().size()) << "each may be dropped or swapped";
  for (const RepairMove& move : moves) {
    EXPECT_NE(move.decision, TensorDecision::keep);
    EXPECT_TRUE(changes.is_movable(move.root));
  }
  TensorDecisions dropped = kept;
  dropped[moves.front().root] = TensorDecision::drop;
  EXPECT_LT(repair_moves(changes, dropped).size(), moves.size()) << "one is made already";
}

TEST_F(RepairMoves, ComeOutOfAQueueCheapestFirst) {
  std::priority_queue<RepairMove> queue;
  for (const double price : {3.0, 1.0, 2.0}) {
    queue.push({.price = price});
  }
  EXPECT_EQ(queue.top().price, 1);
}

TEST_F(RepairMoves, CountBytesOnlyInStepsAboveTheBudget) {
  ScheduleExpander expander(problem);
  Evaluator evaluator(problem, 4 * unit);
  const ExpandedSchedule& expanded = expander.expand(kept);
  evaluator.evaluate(expanded);
  const std::vector<double> held =
      bytes_above_budget(problem, expanded, evaluator.bytes(), 4 * unit);
  // Forward steps 4 and 5 and backward steps 6 and 7 hold more than four of the six maps. The first
  // map is there in all of them.
  const std::uint32_t first = changes.movable().front(), last = changes.movable().back();
  EXPECT_EQ(held[first], 4.0 * unit);
  EXPECT_EQ(held[last], 0) << "the steps that make it and read it need it";
  const std::vector<double> none =
      bytes_above_budget(problem, expanded, evaluator.bytes(), 6 * unit);
  EXPECT_EQ(std::ranges::count(none, 0.0), static_cast<std::ptrdiff_t>(none.size()));
}

TEST_F(RepairMoves, KeepThoseOfTheLargestHolders) {
  std::vector<RepairMove> moves{{.root = 0}, {.root = 1}, {.root = 2}, {.root = 3}};
  const std::vector<double> held{1, 0, 5, 3};
  std::vector<RepairMove> two = moves;
  keep_most_useful(two, held, 2);
  ASSERT_EQ(two.size(), 2U);
  EXPECT_EQ(two[0].root, 2U);
  EXPECT_EQ(two[1].root, 3U);
  keep_most_useful(moves, held, 10);
  EXPECT_EQ(moves.size(), 3U) << "one holds nothing";
}

}  // namespace
}  // namespace cnn::lms
