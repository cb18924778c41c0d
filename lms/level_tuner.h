#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "lms/level_simulator.h"
#include "lms/level_swaps.h"

namespace cnn::lms {

// How TFLMS 2 chooses what the user left open: by halving, each parameter after the one before.
class LevelTuner {
 public:
  // levels: how many there are. log: hears of each set that passed. The simulator must outlive it.
  LevelTuner(const LevelSimulator& simulator, std::int64_t levels,
             std::function<void(const LevelParameters&, const LevelSimulator::Outcome&)> log);

  // Where none of the three is given: whether the step passes as it is.
  bool is_unnecessary(const LevelParameters& given) const;
  // The furthest threshold, then the earliest copies back, then the largest groups that pass. Where
  // nothing does, everything leaves, and all copies are waited for.
  LevelParameters tune(LevelParameters given) const;

 private:
  using Member = std::int64_t LevelParameters::*;

  bool passes(const LevelParameters& parameters) const;
  bool find_threshold(LevelParameters& p) const;
  bool find_ahead(LevelParameters& p, bool known) const;
  bool find_groupby(LevelParameters& p, bool known) const;
  std::int64_t halve(LevelParameters p, Member member, std::int64_t lowest, bool first) const;

  const LevelSimulator& simulator_;
  std::int64_t levels_;
  std::function<void(const LevelParameters&, const LevelSimulator::Outcome&)> log_;
};

// Searches by placing steps in memory, for where the simulator is wrong, as it counts no
// workspaces. Returns the furthest threshold, with the latest copies back and no groups, for which
// `fits` is true, in the first mode from the given one on that has any; parameters that are given
// stay. Nothing: no threshold fits.
std::optional<LevelParameters> tune_by_placement(
    LevelParameters given, std::int64_t levels,
    const std::function<bool(const LevelParameters&)>& fits);

}  // namespace cnn::lms
