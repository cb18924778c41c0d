#pragma once

#include "runtime/kernel.h"

namespace cnn::layers::cuda {

// The rows of all kernels that are our own: they need no library and also run on the emulated grid
// of the tests.
void add_own_kernels(KernelTable& table);

}  // namespace cnn::layers::cuda
