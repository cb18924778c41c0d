#pragma once

#include <memory>
#include <vector>

#include "runtime/graph.h"

namespace cnn::layers {

// A graph cut in two: nodes that need not run in every step, and the step without them. The tensors
// that the prologue makes and the step reads are of Role::derived, of the same names in both. So
// the prologue must run before the first step, and again whenever something other than the step
// wrote the variables that it reads.
struct Divided {
  std::shared_ptr<Graph> step;
  std::shared_ptr<Graph> prologue;  // null where no node was taken
};

// taken: by NodeId, the nodes of the prologue. They must read nothing but variables and what other
// taken nodes make, and change nothing in place. The graph's layouts are settled.
Divided divide(const Graph& graph, const std::vector<bool>& taken);

}  // namespace cnn::layers
