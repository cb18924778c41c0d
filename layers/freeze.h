#pragma once

#include <memory>
#include <string>
#include <vector>

#include "runtime/graph.h"

namespace cnn::layers {

// A node to run once before the first step: it reads and writes variables, by name.
struct Preparation {
  std::shared_ptr<const Op> op;
  std::vector<std::string> inputs, outputs;
};

struct Frozen {
  std::shared_ptr<Graph> graph;
  std::vector<Preparation> preparations;  // in a valid order
};

// Takes out of an inference graph whose layouts are settled every node that depends on nothing but
// the variables of checkpoints: folded batch norms, packed weights. Their outputs become state of
// the new graph, not saved.
Frozen freeze_constants(const Graph& graph);

}  // namespace cnn::layers
