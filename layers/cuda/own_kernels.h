#pragma once

#include "runtime/kernel.h"

namespace cnn::layers::cuda {

// Adds the rows of all our own kernels, which need no library and also run on the emulated grid of
// the tests.
void add_own_kernels(KernelTable& table);

}  // namespace cnn::layers::cuda
