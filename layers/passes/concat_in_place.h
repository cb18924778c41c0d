#pragma once

#include <cstddef>

#include "runtime/graph.h"
#include "runtime/kernel.h"

namespace cnn::layers {

// Removes copies of concatenations: kernels write the operands of a Concat directly into its
// result, and read the results of a Split directly from its input, with a pitch that skips the
// other channels. The pass asks the table for kernels that take this pitch. The node copies a part
// as before if the part does not begin at a multiple of 16 bytes, is an output of the graph, is no
// activation, already shares its bytes, or has a producer or reader whose kernel takes no pitch. It
// copies all of its parts if less than half of the channels could be in place. Values stay the
// same. The layouts of the graph must be settled, and no other rewrite may follow.
Rewritten concat_in_place(const Graph& graph, const KernelTable& table);

// Counts the Concat and Split nodes of a graph and the bytes that they copy.
struct InPlace {
  std::size_t nodes = 0, whole_nodes = 0;   // whole_nodes copy nothing
  std::size_t bytes = 0, copied_bytes = 0;  // of parts in place, of all other parts
};
InPlace count_in_place(const Graph& graph);

}  // namespace cnn::layers
