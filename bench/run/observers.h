#pragma once

#include <optional>

#include "bench/flags/json.h"
#include "bench/report/console.h"
#include "bench/run/training_loop.h"
#include "bench/session/restored.h"

namespace cnn::bench {

class Interruption;
struct Job;
struct RankContext;
class Team;
class SliceLock;
struct MeasuredProfile;

// The objects that the observers of a run read and write.
struct Observed {
  const Job& job;
  const RankContext& context;
  Team& team;
  Console& console;
  Json& result;
  const Interruption& interruption;
  SliceLock* turns = nullptr;          // if the run takes turns with others
  MeasuredProfile* profile = nullptr;  // if steps are profiled
  bool traces = false;                 // traces a step for the first process's --trace_file
  bool has_plan_file = false;          // the first process has --lms_plan_file
};

// Returns all observers of this run, in the order in which they are notified. restored: the
// checkpoint that the run continues. Everything in `run` must outlive the observers. Throws Error
// if one of their files is not writable.
Observers make_observers(const Observed& run, const std::optional<Restored>& restored);

}  // namespace cnn::bench
