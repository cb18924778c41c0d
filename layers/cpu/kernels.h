#pragma once

#include "layers/cpu/isa.h"
#include "runtime/communicator.h"
#include "runtime/kernel.h"

namespace cnn::layers::cpu {

struct KernelChoice {
  // The instruction sets that kernels are chosen for. With sets that effective_isa() lacks the
  // table serves to describe: none of the kernels that need them can be run.
  Isa isa = effective_isa();
  bool winograd = true;  // convolutions in fewer operations where that is faster
};

// Adds the fast CPU kernels: oneDNN's and our own. Ops without a row, and signatures that no row
// takes, are left to whatever the table does otherwise (the reference loops).
void add_kernels(KernelTable& table, const KernelChoice& choice = {});

// Adds what exchanges gradients with other ranks. The communicator must outlive the table and all
// kernels made by it. Without it an op that needs other ranks is an error.
void add_exchange(KernelTable& table, Communicator& communicator);

}  // namespace cnn::layers::cpu
