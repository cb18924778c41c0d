#pragma once

#include <vector>

#include "runtime/graph.h"
#include "runtime/schedule.h"

namespace cnn {

// The live interval of a tensor on the device: from the step that produces or fetches it to the
// last step that touches it, both included. A tensor inside another tensor has no interval of its
// own; the outer tensor's interval spans the first to the last step that touches any of them. The
// outer tensor is offloaded and fetched as a whole; where all tensors inside it are recomputed
// before they are read, a new interval begins.
struct LiveInterval {
  TensorId tensor{};
  StepId first{}, last{};
  std::vector<StepId> touched_by;
};

// Returns every live interval of every input and activation (persistent tensors are always live).
// Throws Error if a step uses a tensor that is not on the device, or offloads a tensor inside
// another one on its own.
std::vector<LiveInterval> live_intervals(const Graph& graph, const Schedule& schedule);

}  // namespace cnn
