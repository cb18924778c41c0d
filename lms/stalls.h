#pragma once

#include "runtime/graph.h"
#include "runtime/schedule.h"
#include "runtime/timeline.h"

namespace cnn::lms {

// Seconds of a step without compute, by cause.
struct Stalls {
  double swap_in = 0;  // a tensor being copied back, or read from the disk
  double memory = 0;   // bytes still being copied out or written to the disk, needed by others
  double other = 0;    // inputs and results, and the gaps between nodes of any step

  double total() const { return swap_in + memory + other; }
};

// Returns the stalls of a measured or simulated step with this linked schedule: traces each wait
// from the delayed node back to the copies that caused it.
Stalls stalls(const Graph& graph, const Schedule& schedule, const Timeline& timeline);

}  // namespace cnn::lms
