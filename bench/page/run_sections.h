#pragma once

#include <span>
#include <string>

#include "bench/compare/run.h"

namespace cnn::page {

using compare::Json;

// A run on the page: one run of a side, or the only run.
struct ShownRun {
  std::string label;  // "base"
  std::string style;  // of its marks: "a" or "b"
  const Json* json = nullptr;
};

// Return sections of a page as HTML; empty if no run has their data. step_section: step times with
// disturbed steps marked; for runs that took turns, on their common clock if the files have it.
std::string step_section(std::span<const ShownRun> runs, bool in_turns);
std::string loss_section(std::span<const ShownRun> runs);        // total loss, warm-up included
std::string evaluation_section(std::span<const ShownRun> runs);  // a table for each run
std::string simulation_section(std::span<const ShownRun> runs);  // tables of a prediction
std::string memory_section(std::span<const ShownRun> runs);      // over the step, by name
std::string lane_section(std::span<const ShownRun> runs);        // planned and measured
std::string operation_section(std::span<const ShownRun> runs);   // a table, costliest first
std::string bound_section(std::span<const ShownRun> runs);       // measured against the bounds
std::string machine_section(std::span<const ShownRun> runs);     // differences are marked

}  // namespace cnn::page
