#pragma once

#include "runtime/graph.h"

namespace cnn::layers {

// Names the outputs of each node after the node, as to_string() of its Compute calls it: "conv#7",
// further outputs "conv#7:1" and so on. Outputs that were given a name of their own keep it. Passes
// keep the names of the graph that they copy, whose nodes had other numbers, so that without this
// one operation would have two names in what a run shows of it. The graph must not be a prologue.
Rewritten name_by_nodes(const Graph& graph);

}  // namespace cnn::layers
