#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "lms/level_simulator.h"
#include "lms/level_swaps.h"

namespace cnn::lms {

// Chooses the parameters that the user left open, as TFLMS 2 does: by bisection, one parameter
// after another.
class LevelTuner {
 public:
  // levels: their number. log: receives each parameter set that passed. The simulator must outlive
  // it.
  LevelTuner(const LevelSimulator& simulator, std::int64_t levels,
             std::function<void(const LevelParameters&, const LevelSimulator::Outcome&)> log);

  // Returns whether no parameter is given and the step passes without swaps.
  bool is_unnecessary(const LevelParameters& given) const;
  // Returns the largest threshold, then the earliest copies back, then the largest groups that
  // pass. If nothing passes, all tensors leave, and compute waits for all copies.
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

// Searches by placing steps in memory, for cases where the simulator errs because it ignores
// workspaces. Returns the largest threshold, with the latest copies back and no groups, for which
// `fits` is true, in the first sync mode from the given one on that has any; given parameters stay.
// Nothing: no threshold fits.
std::optional<LevelParameters> tune_by_placement(
    LevelParameters given, std::int64_t levels,
    const std::function<bool(const LevelParameters&)>& fits);

}  // namespace cnn::lms
