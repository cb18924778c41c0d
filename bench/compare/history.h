#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "bench/compare/configurations.h"
#include "bench/compare/run.h"
#include "bench/compare/verdict.h"

namespace cnn::compare {

// The file of --history: a line of JSON for each run, with what a comparison needs of it.

// One line, with its line break, for a run of a result file.
std::string history_line(const Run& run);

struct History {
  std::vector<Run> runs;              // each has one step, the median of those that count
  std::vector<std::string> problems;  // "FILE:12: cut off ...": lines that are left out
};
// Throws Error in one line that begins with the path if the file cannot be read or has no run.
History read_history(const std::string& path);
History parse_history(const std::string& path, const std::string& text);

// A place where the speed of a configuration changed.
struct SpeedChange {
  std::size_t run = 0;  // the first one after it, counted from 0
  double slowdown =
      0;         // of the step time, in logarithms, by medians of all runs to the next change
  double p = 1;  // of the permutation test
  std::string before, after;          // commits of the runs on both sides; empty if not known
  std::vector<std::string> together;  // "oneDNN: 3.2 before, 3.4 now": what else is different
};

// The history of one configuration.
struct Series {
  std::string label;
  std::vector<Run> runs;             // by the time at which they started
  std::vector<SpeedChange> changes;  // at least the minimum effect each
  std::size_t least_runs = 0;        // that it takes to find any
  std::vector<std::string> notes;    // whole sentences

  bool too_short() const { return runs.size() < least_runs; }
};

// Looks for changes in every configuration of the runs, with the confidence and the minimum effect
// of the settings over all of them together.
std::vector<Series> find_history(std::vector<Run> runs, const Settings& settings,
                                 bool across_machines);

// "from run 21 (commit 0a1b, 2026-01-02) on a step takes 5.20 % longer; the run before has ..."
std::string sentence(const Series& series, const SpeedChange& change);
std::string history_text(const std::vector<Series>& all, const Settings& settings);
std::string history_json(const std::vector<Series>& all, const Settings& settings);

// 1 if the latest change of any configuration made it slower, else 2 if any is too short, else 0.
int exit_code_of(const std::vector<Series>& all);

}  // namespace cnn::compare
