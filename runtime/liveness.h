#pragma once

#include <vector>

#include "runtime/graph.h"
#include "runtime/schedule.h"

namespace cnn {

// One stay of a tensor on the device: from the step that produces or fetches it to the last step
// that touches it, both included. A tensor that lies inside another has none of its own; the outer
// one has: from the first step that touches any of them to the last. It leaves and returns as a
// whole; and where all that lies in it is made again before it is read, that is a stay of its own.
struct Residency {
  TensorId tensor{};
  StepId first{}, last{};
  std::vector<StepId> touched_by;
};

// Every stay of every input and activation (persistent tensors are always there). Throws Error on a
// use of a tensor while it is away, and if one that lies inside another leaves on its own.
std::vector<Residency> residencies(const Graph& graph, const Schedule& schedule);

}  // namespace cnn
