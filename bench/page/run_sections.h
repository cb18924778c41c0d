#pragma once

#include <span>
#include <string>

#include "bench/compare/run.h"

namespace cnn::page {

using compare::Json;

// A run on the page: one of each side, or the only one.
struct ShownRun {
  std::string label;  // "base"
  std::string style;  // of its marks: "a" or "b"
  const Json* json = nullptr;
};

// Parts of a page as HTML; each is empty where no run has what it shows.
// Times, disturbed steps marked; of runs in turns by the clock that they share, where they say it.
std::string step_section(std::span<const ShownRun> runs, bool in_turns);
std::string loss_section(std::span<const ShownRun> runs);       // total loss, warm-up included
std::string memory_section(std::span<const ShownRun> runs);     // over the step, by name
std::string lane_section(std::span<const ShownRun> runs);       // planned beside measured
std::string operation_section(std::span<const ShownRun> runs);  // a table, costliest first
std::string bound_section(std::span<const ShownRun> runs);      // how near the limits
std::string machine_section(std::span<const ShownRun> runs);    // what is unlike is marked

}  // namespace cnn::page
