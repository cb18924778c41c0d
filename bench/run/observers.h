#pragma once

#include "bench/flags/json.h"
#include "bench/report/console.h"
#include "bench/run/training_loop.h"

namespace cnn::bench {

class Interruption;
struct Job;
struct RankContext;
class Team;
class Turns;
struct MeasuredProfile;

// The values that the observers of a run read and write.
struct Observed {
  const Job& job;
  const RankContext& context;
  Team& team;
  Console& console;
  Json& result;
  const Interruption& interruption;
  Turns* turns = nullptr;              // where it takes turns with others
  MeasuredProfile* profile = nullptr;  // where steps are profiled
  bool traces = false;                 // a step, for the first process's --trace_file
};

// Everybody who hears of the steps of this run, in the order in which they are told. All that is
// observed must outlive the observers. Throws Error if a file of theirs cannot be written.
Observers make_observers(const Observed& run);

}  // namespace cnn::bench
