#include "lms/level_tuner.h"

#include <algorithm>
#include <utility>

namespace cnn::lms {
namespace {

constexpr SyncMode next(SyncMode mode) { return static_cast<SyncMode>(static_cast<int>(mode) + 1); }

}  // namespace

LevelTuner::LevelTuner(
    const LevelSimulator& simulator, std::int64_t levels,
    std::function<void(const LevelParameters&, const LevelSimulator::Outcome&)> log)
    : simulator_(simulator), levels_(levels), log_(std::move(log)) {}

bool LevelTuner::is_unnecessary(const LevelParameters& given) const {
  return given.threshold < 0 && given.ahead < 0 && given.groupby < 0 &&
         passes({.threshold = levels_, .ahead = 1, .groupby = 0, .sync = given.sync});
}

LevelParameters LevelTuner::tune(LevelParameters given) const {
  LevelParameters p = given;
  const bool searched = p.threshold < 0;
  if (searched && !find_threshold(p)) {
    return {.threshold = 1, .ahead = given.ahead, .groupby = given.groupby, .sync = SyncMode::both};
  }
  if (waits_for_in(p.sync)) {
    return p;
  }
  const bool opened = p.ahead < 0;
  if ((opened && !find_ahead(p, searched)) ||
      (p.groupby < 0 && !find_groupby(p, searched || opened))) {
    p.sync = SyncMode::both;
  }
  return p;
}

bool LevelTuner::passes(const LevelParameters& parameters) const {
  const LevelSimulator::Outcome outcome = simulator_.play(parameters);
  if (outcome.passed) {
    log_(parameters, outcome);
  }
  return outcome.passed;
}

bool LevelTuner::find_threshold(LevelParameters& p) const {
  LevelParameters trial{.threshold = 1,
                        .ahead = p.ahead < 0 ? 1 : p.ahead,
                        .groupby = std::max<std::int64_t>(p.groupby, 0),
                        .sync = p.sync};
  while (!passes(trial)) {
    if (trial.sync == SyncMode::both) {
      return false;
    }
    trial.sync = next(trial.sync);
  }
  p.sync = trial.sync;
  p.threshold = halve(trial, &LevelParameters::threshold, 1, false);
  return true;
}

// known: the step passes with the smallest value of this parameter.
bool LevelTuner::find_ahead(LevelParameters& p, bool known) const {
  LevelParameters trial = p;
  trial.ahead = 1;
  trial.groupby = std::max<std::int64_t>(p.groupby, 0);
  if (!known && !passes(trial)) {
    return false;
  }
  p.ahead = halve(trial, &LevelParameters::ahead, 1, false);
  return true;
}

bool LevelTuner::find_groupby(LevelParameters& p, bool known) const {
  LevelParameters trial = p;
  trial.groupby = 0;
  if (!known && !passes(trial)) {
    return false;
  }
  trial.groupby = levels_;
  if (!passes(trial)) {
    trial.groupby = 0;
    trial.groupby = halve(trial, &LevelParameters::groupby, 0, true);
  }
  p.groupby = trial.groupby;
  return true;
}

// Returns the largest passing value found by bisection, or the first that passes.
std::int64_t LevelTuner::halve(LevelParameters p, Member member, std::int64_t lowest,
                               bool first) const {
  std::int64_t best = p.*member;
  std::int64_t highest = levels_;
  while (lowest <= highest) {
    p.*member = lowest + (highest - lowest) / 2;
    if (!passes(p)) {
      highest = p.*member - 1;
      continue;
    }
    best = p.*member;
    if (first) {
      break;
    }
    lowest = p.*member + 1;
  }
  return best;
}

// Tries every threshold: placement leaves gaps, so a higher threshold can fit where a lower one
// does not.
std::optional<LevelParameters> tune_by_placement(
    LevelParameters given, std::int64_t levels,
    const std::function<bool(const LevelParameters&)>& fits) {
  const std::int64_t highest = given.threshold < 0 ? levels : given.threshold;
  const std::int64_t lowest = given.threshold < 0 ? 1 : given.threshold;
  LevelParameters p = given;
  p.ahead = given.ahead < 0 ? 1 : given.ahead;
  p.groupby = std::max<std::int64_t>(given.groupby, 0);
  while (true) {
    for (p.threshold = highest; p.threshold >= lowest; --p.threshold) {
      if (fits(p)) {
        return p;
      }
    }
    if (p.sync == SyncMode::both) {
      return std::nullopt;
    }
    p.sync = next(p.sync);
  }
}

}  // namespace cnn::lms
