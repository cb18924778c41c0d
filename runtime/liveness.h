#pragma once

#include <vector>

#include "runtime/graph.h"
#include "runtime/schedule.h"

namespace cnn {

// A live interval of a tensor on the device: from the step that produces or fetches it to the last
// step that touches it, both included. A tensor that lies inside another has none of its own; the
// outer one has: from the first step that touches any of them to the last. It is offloaded and
// fetched as a whole; where all that lies in it is made again before it is read, a new interval
// begins.
struct LiveInterval {
  TensorId tensor{};
  StepId first{}, last{};
  std::vector<StepId> touched_by;
};

// Returns every live interval of every input and activation (persistent tensors are always there).
// Throws Error on a use of a tensor that is not on the device, and where one that lies inside
// another is offloaded on its own.
std::vector<LiveInterval> live_intervals(const Graph& graph, const Schedule& schedule);

}  // namespace cnn
