#pragma once

#include <span>
#include <string>

#include "bench/report/result_json.h"
#include "runtime/program.h"

namespace cnn::bench {

// The facts that the ranks of a run must have alike, as lines that they compare.

// The program and its flags, less those that say where files are or how this host computes.
std::string description(const RunIdentity& identity);

// Returns what a step exchanges, bucket by bucket: how many tensors of how many elements, and how
// they lie in memory. with_places: also where, for ranks that may exchange what lies side by side
// as one.
std::string exchange_plan(const StepPlan& plan, bool with_places);

// The first line in which the texts of the ranks differ, told as an error; empty: they are equal.
std::string first_difference(std::span<const std::string> of_ranks);

}  // namespace cnn::bench
