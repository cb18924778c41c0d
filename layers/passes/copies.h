#pragma once

#include "layers/passes/prologue.h"
#include "runtime/kernel.h"

namespace cnn::layers {

// Keeps 16-bit copies of f32 parameters across steps, as in mixed-precision training (Micikevicius
// et al., 2018): the optimizer's Update writes the copy that kernels read, together with its
// parameter. The Convert nodes that made the copies move from the step to a prologue. A copy is
// never stale: an Update that skips a step changes neither parameter nor copy. A Convert moves only
// if its result is a 16-bit tensor with the parameter's layout that nothing reads after the Update,
// and if the Update has a kernel that writes it; every other Convert stays in the step. The layouts
// of the graph must be settled.
PrologueSplit keep_copies(const Graph& graph, const KernelTable& table);

}  // namespace cnn::layers
