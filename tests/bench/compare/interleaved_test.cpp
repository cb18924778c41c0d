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
  Steps base, candidate;

  std::optional<double> slowdown() const { return interleaved_slowdown(base, candidate); }
  double slowdown_by_medians() const {
    return std::log(summarise(candidate).seconds / summarise(base).seconds);
  }
};

// Simulates two programs with time slices of half a second. A step of the base takes 0.1 s and a
// step of the new program `ratio` times as long. machine(now) slows down both.
Pair in_turns(double seconds, double ratio, const std::function<double(double)>& machine) {
  constexpr double turn = 0.5, step = 0.1;
  Pair pair;
  double now = 1000;
  for (bool candidate = false; now < 1000 + seconds; candidate = !candidate) {
    for (const double start = now; now < start + turn;) {
      const double took = step * (candidate ? ratio : 1) * machine(now - 1000);
      now += took;
      (candidate ? pair.candidate : pair.base).push_back({.seconds = took, .ended = now});
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

// The speed changes just after a slice of the base. More than half of the base's steps are
// therefore fast, and less than half of the new program's.
TEST(TurnByTurn, IsNotMovedByAMachineThatChangesItsSpeed) {
  const Pair pair = in_turns(20, 1, [](double now) { return now < 8.45 ? 1 : 1.4; });
  EXPECT_NEAR(*pair.slowdown(), 0, 1e-12);
  EXPECT_NEAR(pair.slowdown_by_medians(), std::log(1.4), 1e-12);
}

TEST(TurnByTurn, IsNotMovedByDelaysOfSomeSteps) {
  // The delays hit three steps of each slice of the new program, and all of its slices in the first
  // 8 of 20 seconds. A median of steps would not reveal them.
  Pair pair = in_turns(20, 1, [](double) { return 1.0; });
  for (std::size_t i = 0; i < pair.candidate.size(); ++i) {
    pair.candidate[i].seconds *= i % 5 < 3 || pair.candidate[i].ended < 1008 ? 1.5 : 1;
  }
  EXPECT_NEAR(*pair.slowdown(), 0, 1e-12);
  EXPECT_GT(pair.slowdown_by_medians(), 0.4);
  for (TimedStep& step : pair.candidate) {
    step.seconds = 0.15;
  }
  EXPECT_NEAR(*pair.slowdown(), std::log(1.5), 1e-9);
}

TEST(TurnByTurn, NeedsTurnsAndTheirTimes) {
  EXPECT_FALSE(in_turns(4, 1, [](double) { return 1.0; }).slowdown());
  Pair one_after_the_other = in_turns(20, 1, [](double) { return 1.0; });
  for (TimedStep& step : one_after_the_other.candidate) {
    step.ended += 100;
  }
  EXPECT_FALSE(one_after_the_other.slowdown());
  Pair old = in_turns(20, 1, [](double) { return 1.0; });
  old.base.front().ended = 0;
  EXPECT_FALSE(old.slowdown());
}

// Compares 30 pairs of one program on a machine whose speed drifts, as that of shared machines
// does.
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
