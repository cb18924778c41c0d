#pragma once

#include <cstddef>

#include "runtime/graph.h"
#include "runtime/schedule.h"

namespace cnn::lms {

// What a schedule does beyond the step without a plan: departures and returns of activations, and
// nodes that run again.
struct Summary {
  std::size_t swapped_tensors = 0;  // that leave at least once
  std::size_t swap_outs = 0, swap_ins = 0;
  std::size_t bytes_out = 0, bytes_in = 0;
  std::size_t recomputed = 0;  // steps that run a node again
  bool moves() const { return swap_outs > 0 || recomputed > 0; }
};

Summary summarize(const Graph& graph, const Schedule& schedule);

}  // namespace cnn::lms
