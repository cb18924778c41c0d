#include "bench/compare/interleaved.h"

#include <cmath>
#include <functional>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <random>

#include "tests/bench/compare/runs.h"

namespace cnn::compare {
namespace {

using Steps = std::vector<TimedStep>;

struct Pair {
  Steps base, fresh;

  std::optional<double> slowdown() const { return interleaved_slowdown(base, fresh); }
  double slowdown_by_medians() const {
    return std::log(summarise(fresh).seconds / summarise(base).seconds);
  }
};

// Both run in turns of half a second; a step of the new one takes `ratio` times as long as one of
// the base's, 0.1 s, and both `machine(now)` times as long as it should.
Pair in_turns(double seconds, double ratio, const std::function<double(double)>& machine) {
  constexpr double turn = 0.5, step = 0.1;
  Pair pair;
  double now = 1000;
  for (bool fresh = false; now < 1000 + seconds; fresh = !fresh) {
    for (const double start = now; now < start + turn;) {
      const double took = step * (fresh ? ratio : 1) * machine(now - 1000);
      now += took;
      (fresh ? pair.fresh : pair.base).push_back({.seconds = took, .ended = now});
    }
  }
  return pair;
}

TEST(TurnByTurn, FindsTheRatioOnASteadyMachine) {
  const Pair pair = in_turns(20, 1.03, [](double) { return 1.0; });
  EXPECT_NEAR(*pair.slowdown(), std::log(1.03), 1e-12);
}

TEST(TurnByTurn, IsNotMovedByAMachineThatBecomesSlower) {
  const Pair pair = in_turns(20, 1.02, [](double now) { return std::exp(0.05 * now); });
  EXPECT_NEAR(*pair.slowdown(), std::log(1.02), 1e-3);
}

// Just after a turn of the base, so that more than half of its steps are the fast ones, and less
// than half of the other's.
TEST(TurnByTurn, IsNotMovedByAMachineThatChangesItsSpeed) {
  const Pair pair = in_turns(20, 1, [](double now) { return now < 8.45 ? 1 : 1.4; });
  EXPECT_NEAR(*pair.slowdown(), 0, 1e-12);
  EXPECT_NEAR(pair.slowdown_by_medians(), std::log(1.4), 1e-12);
}

TEST(TurnByTurn, IsNotMovedByDelaysOfSomeSteps) {
  // Three steps of every turn of the new one, and all of its turns in the first 8 of 20 seconds: no
  // median of steps would see it.
  Pair pair = in_turns(20, 1, [](double) { return 1.0; });
  for (std::size_t i = 0; i < pair.fresh.size(); ++i) {
    pair.fresh[i].seconds *= i % 5 < 3 || pair.fresh[i].ended < 1008 ? 1.5 : 1;
  }
  EXPECT_NEAR(*pair.slowdown(), 0, 1e-12);
  EXPECT_GT(pair.slowdown_by_medians(), 0.4);
  for (TimedStep& step : pair.fresh) {
    step.seconds = 0.15;
  }
  EXPECT_NEAR(*pair.slowdown(), std::log(1.5), 1e-9);
}

TEST(TurnByTurn, NeedsTurnsAndTheirTimes) {
  EXPECT_FALSE(in_turns(4, 1, [](double) { return 1.0; }).slowdown());
  Pair one_after_the_other = in_turns(20, 1, [](double) { return 1.0; });
  for (TimedStep& step : one_after_the_other.fresh) {
    step.ended += 100;
  }
  EXPECT_FALSE(one_after_the_other.slowdown());
  Pair old = in_turns(20, 1, [](double) { return 1.0; });
  old.base.front().ended = 0;
  EXPECT_FALSE(old.slowdown());
}

// A machine whose speed wanders, as shared ones do: 30 pairs of one program.
TEST(TurnByTurn, ScattersLessThanTheMediansOfRuns) {
  std::mt19937_64 random(20260101);
  std::normal_distribution<double> normal;
  double by_turns = 0, by_medians = 0;
  for (int i = 0; i < 30; ++i) {
    double speed = 0, last = 0;
    const Pair pair = in_turns(18, 1, [&](double now) {
      speed += 0.03 * std::sqrt(std::max(now - last, 0.0)) * normal(random);
      last = now;
      return std::exp(speed + 0.01 * normal(random));
    });
    by_turns += *pair.slowdown() * *pair.slowdown();
    by_medians += pair.slowdown_by_medians() * pair.slowdown_by_medians();
  }
  EXPECT_LT(by_turns, 0.6 * by_medians);
  EXPECT_GT(by_turns, 0);
}

}  // namespace
}  // namespace cnn::compare
