#pragma once

#include "layers/passes/prologue.h"
#include "runtime/kernel.h"

namespace cnn::layers {

// Lets the updates of a training graph write the 16-bit copies of parameters that kernels read: the
// Convert nodes that made them leave the step for a prologue, and each Update mutates the copies
// with their parameters (or neither, where it skips a step), so that none is ever stale. Takes part
// what lies as its parameter does and is read only before the Update, if the kernel of the Update
// can write it; all else stays as it is. The graph's layouts are settled.
Divided keep_copies(const Graph& graph, const KernelTable& table);

}  // namespace cnn::layers
