#pragma once

#include "runtime/graph.h"

namespace cnn::layers {

// Names the outputs of each node after the node, as to_string() of its Compute calls it: "conv#7"
// and for further outputs "conv#7:1" and so on. Outputs with explicit names keep these. Other
// passes keep the names of the graph that they copy, in which nodes had other numbers; without this
// pass the reports of a run would show one operation under two names. The graph must not be a
// prologue.
Rewritten name_by_nodes(const Graph& graph);

}  // namespace cnn::layers
