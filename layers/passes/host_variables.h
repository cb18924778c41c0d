#pragma once

#include <cstddef>
#include <functional>

#include "runtime/graph.h"
#include "runtime/kernel.h"

namespace cnn::layers {

// Returns whether a variable is to lie in host memory.
using IsOnHost = std::function<bool(const TensorInfo&)>;

// The least bytes of a parameter that is worth lying on the host: smaller ones would add nodes and
// save little.
inline constexpr std::size_t min_host_variable_bytes = std::size_t{12} << 20U;

// Returns the graph with the f32 parameters of this choice, and their optimizer slots, in host
// memory. A LoadVariable brings such a parameter to the device for each group of readers that are
// near each other, or the rows that a slice of a dense layer reads. Its update runs in slices of a
// few MiB, each loaded, updated and stored, right after the last reader of the parameter and the
// node that makes its gradient, which alone is whole on the device then (ZeRO-Offload keeps
// parameters so; its update runs on the host). Gradients of slices of a dense layer, see
// slice_dense.h, are updated one by one, so that neither is whole there. Readers in
// the backward pass run before the node that makes the gradient where they can, so that both are
// not there at once. All values keep their bits. Parameters that the table has no kernels for, that
// have copies of 16 bits, or that an update with automatic loss scale changes, stay on the device.
// Layouts must be assigned; passes that assign layouts or place tensors come before and after it.
Rewritten place_variables_on_host(const Graph& graph, const KernelTable& table,
                                  const IsOnHost& is_on_host);

}  // namespace cnn::layers
