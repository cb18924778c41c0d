#include "bench/compare/verdict.h"

#include <cmath>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "bench/compare/tables.h"
#include "tests/bench/compare/runs.h"

namespace cnn::compare {
namespace {

using testing::HasSubstr;
using Steps = std::vector<TimedStep>;

Configuration sides(std::vector<Run> base, std::vector<Run> candidate) {
  return {.label = "synthetic", .base = std::move(base), .candidate = std::move(candidate)};
}

struct Verdicts {
  int regressions = 0, improvements = 0, clean = 0, untold = 0;
};

// Counts the verdicts of 500 comparisons with `runs` runs per side, where the new runs are slower
// by `slower`.
Verdicts verdicts_of(SyntheticRuns::Machine machine, std::size_t runs, double slower) {
  SyntheticRuns draws(20260101, machine);
  Verdicts found;
  for (int i = 0; i < 500; ++i) {
    const Verdict verdict =
        judge({sides(draws.draw(runs, 0.1), draws.draw(runs, 0.1 * (1 + slower)))}, {})
            .front()
            .verdict;
    found.regressions += verdict == Verdict::regression ? 1 : 0;
    found.improvements += verdict == Verdict::improvement ? 1 : 0;
    found.clean += verdict == Verdict::no_regression ? 1 : 0;
    found.untold += verdict == Verdict::inconclusive ? 1 : 0;
  }
  return found;
}

TEST(Verdict, FindsThreePerCentWithFiveRunsASide) {
  EXPECT_GE(verdicts_of({}, 5, 0.03).regressions, 475);
}

TEST(Verdict, FindsOnePerCentWithTwentyRunsASide) {
  EXPECT_GE(verdicts_of({}, 20, 0.01).regressions, 475);
}

TEST(Verdict, IsSeldomAnAlarmOrUntoldForEqualPrograms) {
  const Verdicts found = verdicts_of({}, 5, 0);
  EXPECT_LE(found.regressions, 10);
  EXPECT_LE(found.improvements, 10);
  EXPECT_LE(found.untold, 50);
}

TEST(Verdict, IsNotMovedByHogsThatTheRunsRecorded) {
  const Verdicts found = verdicts_of({.hogged = 0.33}, 5, 0);
  EXPECT_LE(found.regressions, 10);
  EXPECT_LE(found.improvements, 10);
}

TEST(Verdict, IsNotMovedByHogsThatNobodySaw) {
  const Verdicts found = verdicts_of({.hogged = 0.33, .hogs_are_seen = false}, 5, 0);
  EXPECT_LE(found.regressions, 10);
  EXPECT_LE(found.improvements, 10);
}

TEST(Verdict, LeavesOutWhatIsLessThanTheMinimumEffect) {
  const SyntheticRuns::Machine steady{.drift = 0.0001, .scatter = 0.0001};
  EXPECT_EQ(verdicts_of(steady, 5, 0.003).clean, 500);
  EXPECT_EQ(verdicts_of(steady, 5, 0.02).regressions, 500);
  EXPECT_EQ(verdicts_of(steady, 5, -0.02).improvements, 500);
}

TEST(Verdict, SaysHowManyMoreRunsItNeedsOnANoisyMachine) {
  SyntheticRuns draws(7, {.drift = 0.04});
  const Finding few = judge({sides(draws.draw(5, 0.1), draws.draw(5, 0.1))}, {}).front();
  ASSERT_EQ(few.verdict, Verdict::inconclusive);
  ASSERT_TRUE(few.more_runs);
  EXPECT_GT(*few.more_runs, 3U);
  SyntheticRuns worse(7, {.drift = 0.4});
  const Runs same = worse.draw(5, 0.1);
  EXPECT_FALSE(judge({sides(same, same)}, {}).front().more_runs);
}

TEST(Verdict, CannotBeToldFromASingleRunASide) {
  SyntheticRuns draws(1, {});
  const Finding found = judge({sides(draws.draw(1, 0.1), draws.draw(1, 0.2))}, {}).front();
  EXPECT_EQ(found.verdict, Verdict::inconclusive);
  EXPECT_EQ(found.more_runs, 4U);
  EXPECT_EQ(exit_code_of({found}), 2);
}

// A slow neighbour disturbs both runs of a pair equally, so each pair has its own speed.
TEST(Verdict, UsesTheDifferencesOfRunsThatTookTurns) {
  const SyntheticRuns::Machine steady{.drift = 0.002};
  SyntheticRuns draws(3, steady);
  Runs base, candidate;
  for (int pair = 0; pair < 8; ++pair) {
    const double speed = 0.1 * (1 + 0.05 * pair);
    base.push_back(draws.draw(1, speed).front());
    candidate.push_back(draws.draw(1, 1.03 * speed).front());
    base.back().turns = candidate.back().turns = "turns." + std::to_string(pair);
  }
  std::reverse(candidate.begin(), candidate.end());  // pairs are matched by name, not by position
  const Finding paired = judge({sides(base, candidate)}, {}).front();
  EXPECT_TRUE(paired.difference.paired);
  EXPECT_EQ(paired.verdict, Verdict::regression);
  EXPECT_NEAR(percent(paired.difference.estimate), 3, 0.5);
  EXPECT_THAT(paired.notes,
              testing::Contains(HasSubstr("8 of 8 pairs are compared by the medians")));
  candidate.front().turns = "another";
  const Finding loose = judge({sides(base, candidate)}, {}).front();
  EXPECT_FALSE(loose.difference.paired);
  EXPECT_EQ(loose.verdict, Verdict::inconclusive);
  EXPECT_THAT(loose.notes, testing::Contains(HasSubstr("compared as independent")));
}

// Returns pairs of runs with steps of a second and one step per time slice.
Configuration pairs_in_turns(SyntheticRuns& draws) {
  Configuration sides{.label = "synthetic"};
  for (int pair = 0; pair < 5; ++pair) {
    sides.base.push_back(draws.draw(1, 1).front());
    sides.candidate.push_back(draws.draw(1, 1).front());
    Run &base = sides.base.back(), &candidate = sides.candidate.back();
    base.turns = candidate.turns = "turns." + std::to_string(pair);
    for (std::size_t i = 0; i < base.steps.size(); ++i) {
      base.steps[i].ended = 2 * static_cast<double>(i) + 1;
      candidate.steps[i].ended = base.steps[i].ended + 1;
    }
  }
  return sides;
}

// Halfway, just after a step of the base, the machine becomes slower by a tenth. The medians then
// differ, while adjacent slices do not.
TEST(Verdict, ComparesPairsTurnByTurn) {
  SyntheticRuns draws(4, {.drift = 0, .scatter = 0.001});
  Configuration sides = pairs_in_turns(draws);
  for (std::size_t pair = 0; pair < 5; ++pair) {
    Steps &base = sides.base[pair].steps, &candidate = sides.candidate[pair].steps;
    const std::size_t half = base.size() / 2;
    for (std::size_t i = half; i < base.size(); ++i) {
      base[i].seconds *= i > half ? 1.1 : 1;
      candidate[i].seconds *= 1.1;
    }
  }
  const Finding found = judge({sides}, {}).front();
  EXPECT_EQ(found.verdict, Verdict::no_regression);
  EXPECT_NEAR(percent(found.difference.estimate), 0, 0.1);
  EXPECT_GT(found.candidate.seconds, 1.02 * found.base.seconds)
      << "a comparison of medians would find a regression";
  EXPECT_TRUE(found.notes.empty());
}

TEST(Verdict, ComparesRunsOfDifferentTimesAsIndependent) {
  SyntheticRuns draws(4, {});
  Configuration sides = pairs_in_turns(draws);
  for (auto& run : sides.candidate) {
    for (TimedStep& step : run.steps) {
      step.ended += 1000;
    }
  }
  const Finding found = judge({sides}, {}).front();
  EXPECT_FALSE(found.difference.paired);
  EXPECT_THAT(found.notes, testing::Contains(HasSubstr("compared as independent")));
}

TEST(Verdict, CountsPairsThatWereDisturbedThroughout) {
  SyntheticRuns draws(8, {.drift = 0.001, .scatter = 0.001});
  Configuration sides = pairs_in_turns(draws);
  for (std::size_t i = 0; i < sides.base[2].steps.size(); ++i) {
    for (TimedStep* step : {&sides.base[2].steps[i], &sides.candidate[2].steps[i]}) {
      step->seconds *= 2;
      step->disturbed = true;
    }
  }
  const Finding by_turns = judge({sides}, {}).front();
  EXPECT_EQ(by_turns.slowdowns.size(), 5U);
  EXPECT_TRUE(by_turns.notes.empty());
  for (TimedStep& step : sides.base[2].steps) {
    step.ended = 0;
  }
  const Finding by_medians = judge({sides}, {}).front();
  EXPECT_EQ(by_medians.slowdowns.size(), 4U) << "only the medians of that pair could be compared";
  EXPECT_THAT(by_medians.notes, testing::Contains(HasSubstr("1 of the base's and 1 of the new")));
}

TEST(Verdict, DoesNotBlameTheProgramForWorkBesideOneSide) {
  SyntheticRuns quiet(5, {}), busy(6, {.hogged = 1});
  const Finding found = judge({sides(quiet.draw(5, 0.1), busy.draw(5, 0.1))}, {}).front();
  EXPECT_EQ(found.verdict, Verdict::inconclusive);
  EXPECT_THAT(found.notes, testing::Contains(HasSubstr("disturbed 0 of the 5 base runs and 5 of "
                                                       "the 5 new runs")));
  EXPECT_GE(found.more_runs, 3U) << "no undisturbed new run is left";
}

Runs disturbed_and_quiet(std::size_t disturbed, std::size_t quiet, std::uint64_t seed) {
  SyntheticRuns busy(seed, {.hogged = 1}), calm(seed + 1, {});
  Runs runs = busy.draw(disturbed, 0.1);
  for (const auto& run : calm.draw(quiet, 0.1)) {
    runs.push_back(run);
  }
  return runs;
}

// A comparison of six disturbed runs with three undisturbed ones would measure the other load of
// the machine.
TEST(Verdict, CountsDisturbedRunsOnBothSidesOrOnNeither) {
  const Finding mixed =
      judge({sides(disturbed_and_quiet(6, 0, 21), disturbed_and_quiet(3, 3, 23))}, {}).front();
  EXPECT_EQ(mixed.base.counted(), 6U);
  EXPECT_EQ(mixed.candidate.counted(), 6U);
  EXPECT_EQ(mixed.verdict, Verdict::inconclusive);
  EXPECT_THAT(mixed.notes, testing::Contains(HasSubstr("disturbed 6 of the 6 base runs and 3 of "
                                                       "the 6 new runs: all count")));
  const Finding quiet =
      judge({sides(disturbed_and_quiet(2, 4, 21), disturbed_and_quiet(3, 3, 23))}, {}).front();
  EXPECT_EQ(quiet.base.counted(), 4U);
  EXPECT_EQ(quiet.candidate.counted(), 3U);
}

bool told(const Difference& difference, const Settings& settings) {
  return difference.upper(settings.confidence) < std::log1p(settings.resolution) ||
         (difference.estimate >= std::log1p(settings.minimum_effect) &&
          difference.lower(settings.confidence) > 0);
}

// The sides have different sizes, and the same number of runs is added to both.
TEST(Verdict, NamesTheLeastNumberOfMoreRunsThatWouldDo) {
  const Settings settings;
  int untold = 0;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    SyntheticRuns draws(seed, {.drift = 0.03});
    const Finding found = judge({sides(draws.draw(9, 0.1), draws.draw(3, 0.1))}, settings).front();
    if (found.verdict != Verdict::inconclusive) {
      continue;
    }
    ++untold;
    ASSERT_TRUE(found.more_runs);
    const std::size_t more = *found.more_runs;
    EXPECT_TRUE(told(with_runs(found.difference, 9 + more, 3 + more), settings));
    EXPECT_FALSE(told(with_runs(found.difference, 8 + more, 2 + more), settings));
  }
  EXPECT_GT(untold, 10);
}

TEST(Verdict, NamesEnoughUndisturbedRunsWhereOneSideWasDisturbed) {
  const Settings settings;
  SyntheticRuns quiet(5, {.drift = 0.02}), busy(6, {.hogged = 1});
  const Runs base = quiet.draw(8, 0.1);
  const Finding found = judge({sides(base, busy.draw(5, 0.1))}, settings).front();
  ASSERT_TRUE(found.more_runs);
  // The undisturbed runs of the new side are assumed to scatter like those of the base.
  const Finding alike = judge({sides(base, base)}, settings).front();
  Difference none = alike.difference;
  none.estimate = 0;
  EXPECT_TRUE(told(with_runs(none, 8 + *found.more_runs, *found.more_runs), settings));
  EXPECT_FALSE(told(with_runs(none, 7 + *found.more_runs, *found.more_runs - 1), settings));
}

TEST(Verdict, IsCorrectedForTheNumberOfConfigurations) {
  SyntheticRuns draws(11, {});
  const Configuration same = sides(draws.draw(5, 0.1), draws.draw(5, 0.1));
  const Finding alone = judge({same}, {}).front();
  const std::vector<Finding> many = judge(std::vector<Configuration>(10, same), {});
  EXPECT_GE(many.front().p_slower, alone.p_slower);
  const Configuration slow = sides(draws.draw(5, 0.1), draws.draw(5, 0.105));
  const std::vector<Finding> mixed = judge({same, slow, same}, {});
  EXPECT_EQ(mixed[1].verdict, Verdict::regression);
  EXPECT_EQ(exit_code_of(mixed), 1);
}

// Returns the finding on quiet runs that are slower by 3.9 %.
Finding slower_by_four_per_cent(const Settings& settings) {
  SyntheticRuns draws(1, {.drift = 0.0005, .scatter = 0.0005});
  return judge({sides(draws.draw(5, 0.1), draws.draw(5, 0.1039))}, settings).front();
}

TEST(Verdict, IsNoRegressionIfTheBoundsAreBelowTheMinimumEffect) {
  EXPECT_EQ(slower_by_four_per_cent({.minimum_effect = 0.05, .resolution = 0.03}).verdict,
            Verdict::no_regression);
  EXPECT_EQ(slower_by_four_per_cent({.minimum_effect = 0.03, .resolution = 0.03}).verdict,
            Verdict::regression);
}

TEST(Verdict, IsUntoldIfTheMinimumEffectIsWithinTheBounds) {
  const Finding finding = slower_by_four_per_cent({.minimum_effect = 0.0395, .resolution = 0.03});
  EXPECT_EQ(finding.verdict, Verdict::inconclusive);
  EXPECT_TRUE(finding.more_runs);
  EXPECT_THAT(sentence(finding, {.minimum_effect = 0.0395, .resolution = 0.03}),
              HasSubstr("so that 3.95 % more step time could hide; needs about"));
}

}  // namespace
}  // namespace cnn::compare
