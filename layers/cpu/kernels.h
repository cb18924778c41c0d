#pragma once

#include "layers/cpu/isa.h"
#include "runtime/communicator.h"
#include "runtime/kernel.h"

namespace cnn::layers::cpu {

struct KernelChoice {
  // The instruction sets that select kernels. With sets that effective_isa() lacks, the table can
  // only describe: kernels that need those sets cannot run.
  Isa isa = effective_isa();
  bool winograd = true;  // convolutions with fewer operations, where that is faster
  // Whether weights change between steps. If not, a pass converts them once and for all, and
  // kernels that convert them as they read them would read more.
  bool weights_change = true;
};

// Adds the fast CPU kernels: oneDNN's and our own. Ops without a row, and signatures that no row
// accepts, fall back to the table's `otherwise` (the reference loops).
void add_kernels(KernelTable& table, const KernelChoice& choice = {});

// Adds kernels that exchange gradients with other ranks. The communicator must outlive the table
// and all its kernels. Without these kernels, an op that needs other ranks is an error.
void add_exchange(KernelTable& table, Communicator& communicator);

}  // namespace cnn::layers::cpu
