#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "bench/compare/configurations.h"
#include "bench/compare/run.h"
#include "bench/compare/verdict.h"

namespace cnn::compare {

// The file of --history: a line of JSON for each run, with the facts that a comparison needs.

// Returns one line, with its line break, for the run of a result file.
std::string history_line(const Run& run);

struct History {
  std::vector<Run> runs;              // each with one step, the median of its undisturbed steps
  std::vector<std::string> problems;  // "FILE:12: cut off ...": skipped lines
};
// Throws Error in one line that begins with the path if the file is unreadable or has no run.
History read_history(const std::string& path);
History parse_history(const std::string& path, const std::string& text);

// A change in the speed of a configuration.
struct SpeedChange {
  std::size_t run = 0;  // the first run after the change, from 0
  double slowdown =
      0;         // of the step time, in logarithms, by medians of all runs to the next change
  double p = 1;  // of the permutation test
  std::string before, after;          // commits of the adjacent runs; empty if unknown
  std::vector<std::string> together;  // "oneDNN: 3.2 before, 3.4 now": other differences
};

// The history of one configuration.
struct Series {
  std::string label;
  std::vector<Run> runs;             // in order of their start
  std::vector<SpeedChange> changes;  // each at least the minimum effect
  std::size_t min_runs = 0;          // minimum for a detectable change
  std::vector<std::string> notes;    // sentences

  bool too_short() const { return runs.size() < min_runs; }
};

// Searches every configuration of the runs for changes, with the confidence and the minimum effect
// of the settings, corrected for the number of configurations. Throws Error if the confidence is
// so high that the search would take very long.
std::vector<Series> find_history(std::vector<Run> runs, const Settings& settings,
                                 bool across_machines);

// Returns "from run 21 (commit 0a1b, 2026-01-02) on a step takes 5.20 % longer; the run before has
// ..."
std::string sentence(const Series& series, const SpeedChange& change);
std::string history_text(const std::vector<Series>& all, const Settings& settings);
std::string history_json(const std::vector<Series>& all, const Settings& settings);

// Returns 1 if the latest change of any configuration is a slowdown, else 2 if any is too short,
// else 0.
int exit_code_of(const std::vector<Series>& all);

}  // namespace cnn::compare
