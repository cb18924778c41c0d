#include "lms/bound.h"

#include <gtest/gtest.h>
#include <limits>

#include "tests/lms/problem.h"

namespace cnn::lms {
namespace {

using namespace cnn::tests;

constexpr double infinity = std::numeric_limits<double>::infinity();

TEST(Bound, IsTheBestStepOfUniformChains) {
  for (const Fixture& fixture : fixtures) {
    Problem chain = uniform_chain(fixture.layers);
    chain.options.recompute = Recomputation::off;
    chain.limit(fixture.device, fixture.out, fixture.in);
    const Bound bound = lower_bound(chain.request());
    EXPECT_NEAR(bound.seconds, fixture.seconds, 1e-9)
        << fixture.layers << " layers in " << fixture.device << ", " << fixture.out << " out, "
        << fixture.in << " in";
    EXPECT_EQ(bound.seconds_swap_only, bound.seconds);
  }
}

TEST(Bound, IsTheTimeOfComputeWhereNothingMustGo) {
  Problem chain = uniform_chain(10);
  chain.limit(10, 1, 1);
  EXPECT_EQ(lower_bound(chain.request()).seconds, 30);
  EXPECT_EQ(lower_bound(chain.request()).min_bytes, 2 * unit) << "a layer's input and output";
  chain.limit(2, 0, 0);
  EXPECT_EQ(lower_bound(chain.request()).seconds, 30) << "copies take no time";
}

TEST(Bound, CountsWhatRunsAgainWhereThereIsNoLink) {
  Problem chain = uniform_chain(10);
  chain.limit(4, 1, 1);
  chain.budget.host = 0;
  const Bound bound = lower_bound(chain.request());
  EXPECT_NEAR(bound.seconds, 36, 1e-4) << "six of ten units, one second each";
  EXPECT_LE(bound.seconds, 36);
  EXPECT_EQ(bound.seconds_swap_only, infinity);
}

TEST(BudgetBounds, AreThoseOfRequestsWithTheseBudgets) {
  for (const Recomputation recompute : {Recomputation::off, Recomputation::full}) {
    Problem chain = uniform_chain(10);
    chain.options.recompute = recompute;
    chain.limit(3, 0.25, 0.5);
    const Request request = chain.request();
    BudgetBounds bounds(request);
    for (const std::size_t units : {9, 2, 4, 2, 1}) {
      Budget budget = chain.budget;
      budget.device = units * unit;
      const Request other{.graph = request.graph,
                          .specs = request.specs,
                          .schedule = request.schedule,
                          .backward = request.backward,
                          .costs = request.costs,
                          .budget = budget,
                          .options = request.options};
      EXPECT_EQ(bounds.seconds(units * unit), lower_bound(other).seconds) << units;
    }
  }
}

// Step 9 starts at 9 s and needs 6 units to be gone. Only 2 have left by then, so the rest runs
// again.
TEST(Bound, RunsAgainWhatTheLinkDoesNotTakeInTime) {
  Problem chain = uniform_chain(10);
  chain.limit(4, 0.25, 1);
  EXPECT_NEAR(lower_bound(chain.request()).seconds, 34, 1e-4);
  EXPECT_NEAR(lower_bound(chain.request()).seconds_swap_only, 46, 1e-9);
}

TEST(Bound, IsInfiniteWhereNoPlanFits) {
  Problem chain = uniform_chain(10);
  chain.limit(1, 1, 1);
  EXPECT_EQ(lower_bound(chain.request()).seconds, infinity);
  chain.limit(9, 1, 1);
  chain.options.excluded_types = {"opaque"};
  const Bound kept = lower_bound(chain.request());
  EXPECT_EQ(kept.seconds, infinity) << "nothing may leave";
  EXPECT_EQ(kept.min_bytes, 10 * unit);
}

TEST(Bound, HoldsNoMoreOnTheHostThanThereIsRoomFor) {
  Problem chain = uniform_chain(10);
  chain.limit(4, 1, 1);
  chain.budget.host = 4 * unit;
  const Bound bound = lower_bound(chain.request());
  EXPECT_NEAR(bound.seconds, 32, 1e-4) << "two of six tensors are recomputed";
  EXPECT_EQ(bound.seconds_swap_only, infinity);
}

TEST(Bound, SharesTheTimeOfANodeAmongItsOutputs) {
  Problem problem;
  const Value w = problem.graph->state("w", units(0), {}, false);
  const std::vector<Value> both =
      emit_all(Opaque({units(3), units(1)}), std::span<const Value>(&w, 1));
  const Value far = emit(Opaque({units(4)}), {w});
  const Value gradient = emit(Opaque({units(0)}), {far});
  problem.graph->output("gradient", emit(Opaque({units(0)}), {both[0], both[1], gradient}));
  problem.costs.seconds = {8, 1, 1, 1};
  problem.finish(2);
  problem.limit(6, 0, 0);
  problem.budget.host = 0;
  EXPECT_NEAR(lower_bound(problem.request()).seconds, 11 + 4, 1e-4)
      << "half of the node's outputs are recomputed";
}

TEST(Bound, LetsAnOutputHaveTheBytesOfAnInputThatIsMadeAgain) {
  Problem problem;
  const Value w = problem.graph->state("w", units(0), {}, false);
  const Value a = emit(Opaque({units(2)}), {w});
  const Value b = emit(Opaque({units(2)}, {.in_place = true}), {a});
  const Value gradient = emit(Opaque({units(0)}), {b});
  problem.graph->output("gradient", emit(Opaque({units(0)}), {a, gradient}));
  problem.costs.seconds = {1, 1, 1, 1};
  problem.finish(2);
  problem.limit(2, 0, 0);
  EXPECT_EQ(lower_bound(problem.request()).min_bytes, 2 * unit);
}

TEST(Bound, SharesALinkThatIsSlowerBothWays) {
  Problem chain = uniform_chain(10);
  chain.limit(4, 0.5, 0.5);
  chain.costs.both_bytes_per_second = 0.5 * unit;
  // Six units go out and come back between the end of the first step and the start of the last.
  EXPECT_NEAR(lower_bound(chain.request()).seconds_swap_only, 34, 1e-9);
  chain.limit(2, 0.5, 0.5);
  EXPECT_NEAR(lower_bound(chain.request()).seconds_swap_only, 38, 1e-9);
}

// Nodes of a copy lane, which move variables that lie on the host, run one after another.
TEST(Bound, IsAtLeastTheTimeOfTheNodesOfACopyLane) {
  for (const Recomputation recompute : {Recomputation::automatic, Recomputation::off}) {
    Problem problem;
    const Value w = problem.graph->state("w", units(1), {}, false);
    for (int i = 0; i < 3; ++i) {
      emit(Opaque({units(1)}), {emit(Scale(1, {.lane = Lane::copy_in}), {w})});
      problem.add_cost(7);
      problem.add_cost(2);
    }
    problem.finish(4);
    problem.limit(8, 1, 1);
    problem.options.recompute = recompute;
    EXPECT_EQ(lower_bound(problem.request()).seconds, 21);
    EXPECT_EQ(lower_bound_of(problem.request(), problem.schedule), 21);
  }
}

TEST(Bound, EqualsTheTimeOfAForwardPass) {
  Problem problem;
  Value last = problem.graph->state("w", units(1), {}, false);
  for (int i = 0; i < 4; ++i) {
    last = emit(Opaque({units(2)}), {last});
    problem.add_cost(1);
  }
  problem.graph->output("last", last);
  problem.finish(4);
  problem.backward = StepId{static_cast<std::uint32_t>(problem.schedule.steps.size())};
  problem.limit(4, 1, 1);
  EXPECT_EQ(lower_bound(problem.request()).seconds, 4);
  problem.limit(3, 1, 1);
  EXPECT_EQ(lower_bound(problem.request()).seconds, infinity);
}

// Six units must be away when steps 9 and 10 start at 9 and 10 s, and the host holds four. The
// first unit exists after 1 s, and the last backward step takes 2 s.
TEST(Bound, CountsTheDiskForWhatTheHostDoesNotHold) {
  Problem chain = uniform_chain(10);
  chain.options.recompute = Recomputation::off;
  chain.limit(4, 1, 1);
  chain.budget.host = 4 * unit;
  chain.budget.disk = 100 * unit;
  const auto seconds = [&](double store, double load) {
    chain.costs.store_bytes_per_second = store * unit;
    chain.costs.load_bytes_per_second = load * unit;
    return lower_bound(chain.request()).seconds;
  };
  EXPECT_NEAR(seconds(1, 1), 30, 1e-9);
  EXPECT_NEAR(seconds(0.125, 1), 30 + 8, 1e-9) << "two units are written at 17 s";
  EXPECT_NEAR(seconds(1, 1 / 16.0), 12 + 32 + 2, 1e-9) << "two units are read after step 10";
  EXPECT_NEAR(seconds(0.125, 1 / 16.0), 8 + 12 + 32 + 2, 1e-9);
  chain.budget.disk = unit;
  EXPECT_EQ(seconds(1, 1), infinity) << "two units do not fit there";
}

}  // namespace
}  // namespace cnn::lms
