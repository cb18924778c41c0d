#include "lms/search.h"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <gtest/gtest.h>
#include <vector>

#include "lms/planning_problem.h"
#include "tests/lms/problem.h"

namespace cnn::lms {
namespace {

using tests::uniform_chain;
using tests::unit;

std::size_t count(const Solution& solution, TensorDecision decision) {
  return static_cast<std::size_t>(std::ranges::count(solution.decisions, decision));
}

std::size_t moved(const Solution& solution) {
  return solution.decisions.size() - count(solution, TensorDecision::keep);
}

PlanningProblem chain_of_ten(double out, double in) {
  tests::Problem chain = uniform_chain(10);
  chain.limit(0, out, in);
  return planning_problem(chain.request());
}

TEST(Search, KeepsEverythingWhereEverythingFits) {
  const Solution found = search(chain_of_ten(1, 1), {.device_bytes = 10 * unit});
  EXPECT_EQ(moved(found), 0U);
  EXPECT_EQ(found.evaluation.seconds, 30);
}

TEST(Search, FindsTheBestSwapsOfUniformChains) {
  for (const tests::Fixture& fixture : tests::fixtures) {
    tests::Problem chain = uniform_chain(fixture.layers);
    chain.limit(fixture.device, fixture.out, fixture.in);
    const Solution found =
        search(planning_problem(chain.request()),
               {.device_bytes = chain.budget.device, .drops = false, .work = 400'000});
    EXPECT_TRUE(found.evaluation.fits) << fixture.layers << " layers in " << fixture.device;
    EXPECT_GE(found.evaluation.seconds, fixture.seconds - 1e-9) << "the optimum is proved";
    EXPECT_LE(found.evaluation.seconds, fixture.seconds * 1.05)
        << fixture.layers << " layers in " << fixture.device << ", " << fixture.out << " out, "
        << fixture.in << " in";
    EXPECT_EQ(count(found, TensorDecision::drop) + count(found, TensorDecision::drop_often), 0U);
  }
}

TEST(Search, RecomputesWhereNothingMayBeSwapped) {
  const Solution found =
      search(chain_of_ten(1, 1), {.device_bytes = 5 * unit, .swaps = false, .work = 200'000});
  EXPECT_TRUE(found.evaluation.fits);
  EXPECT_EQ(count(found, TensorDecision::swap), 0U);
  EXPECT_GT(found.evaluation.seconds, 30);
}

// 97 maps in 20 units: six checkpoints and the maps of the blocks between two of them. Without
// checkpoints the sums of all blocks would be recomputed at once.
TEST(Search, KeepsCheckpointsOfAResidualChain) {
  const PlanningProblem problem = planning_problem(tests::residual_chain(32).request());
  const Solution found =
      search(problem, {.device_bytes = 20 * unit, .swaps = false, .work = 100'000});
  EXPECT_TRUE(found.evaluation.fits);
  const double forward = 1 + 32 * 7, backward = 97 * 2;
  EXPECT_LE(found.evaluation.seconds, 3 * forward + backward)
      << "without checkpoints annealing came to 1355 s in this work";
}

TEST(Search, SwapsNoMoreThanTheHostHolds) {
  const Solution found = search(
      chain_of_ten(1, 1), {.device_bytes = 4 * unit, .host_bytes = 2 * unit, .work = 200'000});
  EXPECT_TRUE(found.evaluation.fits);
  EXPECT_LE(count(found, TensorDecision::swap), 2U);
}

TEST(Search, SaysThatNothingFitsAndComesNear) {
  const Solution found = search(
      chain_of_ten(1, 1), {.device_bytes = unit, .swaps = true, .drops = false, .work = 100'000});
  EXPECT_FALSE(found.evaluation.fits);
  EXPECT_EQ(found.evaluation.peak, 2 * unit) << "a layer reads one unit and makes one";
}

TEST(Search, EndsOnceAnotherPlanIsFasterThanItsBound) {
  const PlanningProblem problem = chain_of_ten(1, 1);
  SearchOptions options{.device_bytes = 4 * unit, .work = 50'000};
  const Solution free = search(problem, options);
  std::atomic<double> known = 30;
  options.rival = {.seconds = &known, .bound_seconds = 29};
  EXPECT_EQ(search(problem, options).decisions, free.decisions) << "it may find a faster plan";
  options.rival.bound_seconds = 30;
  EXPECT_EQ(search(problem, options).decisions, free.decisions) << "or one that is as fast";
  options.rival.bound_seconds = 31;
  EXPECT_THROW(search(problem, options), SearchOvertaken);
}

TEST(Search, MinimisesThePeakWhateverTheTime) {
  const Solution found =
      search(chain_of_ten(1, 1), {.device_bytes = 0, .minimize_memory = true, .work = 200'000});
  EXPECT_EQ(found.evaluation.peak, 2 * unit);
}

TEST(Search, MinimisesThePeakAmongPlansThatTheHostHolds) {
  const Solution found = search(chain_of_ten(1, 1), {.device_bytes = 0,
                                                     .host_bytes = 3 * unit,
                                                     .drops = false,
                                                     .minimize_memory = true,
                                                     .work = 200'000});
  EXPECT_EQ(count(found, TensorDecision::swap), 3U);
  EXPECT_EQ(found.evaluation.peak, 7 * unit) << "of ten units, three are on the host";
}

TEST(Search, SwapsASmallTensorWhereTheHostHasNoRoomForAnEarlierOne) {
  PlanningProblem problem = chain_of_ten(1, 1);
  const auto large = std::ranges::find_if(problem.roots, &Root::may_leave);
  large->bytes = 4 * unit;
  const auto place = static_cast<std::size_t>(large - problem.roots.begin());
  for (const bool minimize : {false, true}) {
    const Solution found = search(problem, {.device_bytes = minimize ? 0 : 12 * unit,
                                            .host_bytes = unit,
                                            .drops = false,
                                            .minimize_memory = minimize,
                                            .work = 100'000});
    EXPECT_EQ(found.decisions[place], TensorDecision::keep) << minimize;
    EXPECT_EQ(count(found, TensorDecision::swap), 1U) << minimize;
  }
}

TEST(Search, DependsOnItsArgumentsAlone) {
  const PlanningProblem problem = chain_of_ten(0.25, 0.25);
  const SearchOptions options{.device_bytes = 4 * unit, .work = 50'000};
  const Solution one = search(problem, options), other = search(problem, options);
  EXPECT_EQ(one.decisions, other.decisions);
  EXPECT_EQ(one.evaluation.seconds, other.evaluation.seconds);
}

TEST(Search, RepairsAStartThatDoesNotFit) {
  const PlanningProblem problem = chain_of_ten(1, 1);
  const TensorDecisions start(problem.roots.size(), TensorDecision::keep);
  const Solution found =
      search(problem, {.device_bytes = 4 * unit, .work = 20'000, .start = &start});
  EXPECT_TRUE(found.evaluation.fits);
  EXPECT_GT(moved(found), 0U);
}

// The outputs of the first layers wait the longest for the backward pass.
TEST(Search, RepairsWithTheTensorsThatHoldMostWhereItCannotPriceAllMoves) {
  const PlanningProblem problem = chain_of_ten(1, 1);
  const TensorDecisions start(problem.roots.size(), TensorDecision::keep);
  constexpr std::size_t evaluations = 15;  // there are more moves
  const Solution found = search(
      problem,
      {.device_bytes = 8 * unit, .work = evaluations * problem.steps.size(), .start = &start});
  EXPECT_TRUE(found.evaluation.fits);
  EXPECT_GT(moved(found), 0U);
  const auto is_moved = [](TensorDecision decision) { return decision != TensorDecision::keep; };
  EXPECT_EQ(std::ranges::find_if(found.decisions.begin() + 4, found.decisions.end(), is_moved),
            found.decisions.end());
}

TEST(Search, LeavesFixedDecisionsAsTheyAre) {
  const PlanningProblem problem = chain_of_ten(1, 1);
  TensorDecisions start(problem.roots.size(), TensorDecision::keep);
  std::vector<std::uint8_t> fixed(problem.roots.size());
  for (std::size_t root = 0; root < problem.roots.size(); ++root) {
    start[root] = problem.roots[root].may_leave ? TensorDecision::swap : TensorDecision::keep;
    fixed[root] = root % 2 == 0 ? 1 : 0;
  }
  const SearchOptions options{.device_bytes = 8 * unit,
                              .work = 20'000,
                              .start = &start,
                              .fixed = fixed,
                              .prune_moves = true};
  const Solution found = search(problem, options);
  for (std::size_t root = 0; root < start.size(); root += 2) {
    EXPECT_EQ(found.decisions[root], start[root]) << root;
  }
  EXPECT_NE(found.decisions, start) << "the others gain nothing by a move";
}

TEST(Search, PrunesMovesThatGainNothing) {
  const PlanningProblem problem = chain_of_ten(1, 1);
  TensorDecisions start(problem.roots.size(), TensorDecision::keep);
  for (std::size_t root = 0; root < problem.roots.size(); ++root) {
    start[root] = problem.roots[root].may_leave ? TensorDecision::swap : TensorDecision::keep;
  }
  // Without work for annealing, only pruning changes the start solution.
  SearchOptions options{.device_bytes = 8 * unit, .work = 0, .start = &start};
  const Solution all = search(problem, options);
  options.prune_moves = true;
  const Solution pruned = search(problem, options);
  EXPECT_TRUE(pruned.evaluation.fits);
  EXPECT_LT(moved(pruned), moved(all));
  EXPECT_LE(pruned.evaluation.seconds, all.evaluation.seconds);
}

}  // namespace
}  // namespace cnn::lms
