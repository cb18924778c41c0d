#pragma once

#include "runtime/kernel.h"

namespace cnn::layers::cpu {

// Adds the fast CPU kernels: oneDNN's and our own. Ops without a row, and signatures that no row
// takes, are left to whatever the table does otherwise (the reference loops).
void add_kernels(KernelTable& table);

}  // namespace cnn::layers::cpu
