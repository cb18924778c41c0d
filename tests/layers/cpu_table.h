#pragma once

#include "layers/cpu/kernels.h"
#include "runtime/cpu/reference_kernel.h"
#include "runtime/kernel.h"

namespace cnn::tests {

// The kernels of the CPU, with the loops that define the ops behind them.
inline const KernelTable& cpu_table() {
  static const KernelTable table = [] {
    KernelTable made;
    layers::cpu::add_kernels(made);
    add_reference(made);
    return made;
  }();
  return table;
}

// The loops that define the ops alone, which ask for no other orders of weights.
inline const KernelTable& plain_table() {
  static const KernelTable table = [] {
    KernelTable made;
    add_reference(made);
    return made;
  }();
  return table;
}

}  // namespace cnn::tests
