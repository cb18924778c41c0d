#pragma once

#include "runtime/graph.h"
#include "runtime/schedule.h"
#include "runtime/timeline.h"

namespace cnn::lms {

// Seconds of a step in which nothing computed, by what that waited for.
struct Stalls {
  double swap_in = 0;  // a tensor on its way back
  double memory = 0;   // bytes that were still leaving, for what computes or for what came back
  double other = 0;    // inputs and results, and what lies between two nodes in any step

  double total() const { return swap_in + memory + other; }
};

// Returns the stalls of a step that ran, or was simulated, by this linked schedule: each wait is
// followed back from the node that could not start to the copies that kept it.
Stalls stalls(const Graph& graph, const Schedule& schedule, const Timeline& timeline);

}  // namespace cnn::lms
