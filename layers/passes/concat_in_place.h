#pragma once

#include <cstddef>

#include "runtime/graph.h"
#include "runtime/kernel.h"

namespace cnn::layers {

// The operands of a Concat are made inside its result, and the results of a Split are read where it
// lies inside its input, wherever the kernels of the table write and read it so: asked with the
// pitch, they must answer with it. An operand that cannot lie there is copied as before: a part
// that does not begin at a multiple of 16 bytes, that leaves the device, that is no activation,
// shares its bytes already, or is made or read by a kernel that knows no pitch; and everything
// where that leaves less than half of an image in place. For graphs whose layouts are settled; no
// other rewrite may follow. The same values.
Rewritten concat_in_place(const Graph& graph, const KernelTable& table);

// The Concats and Splits of a graph, and what they need not copy.
struct InPlace {
  std::size_t nodes = 0, whole_nodes = 0;   // those that copy nothing
  std::size_t bytes = 0, copied_bytes = 0;  // of parts that lie in place, of the others
};
InPlace count_in_place(const Graph& graph);

}  // namespace cnn::layers
