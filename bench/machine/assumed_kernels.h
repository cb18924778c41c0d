#pragma once

#include "runtime/kernel.h"

namespace cnn::bench {

// Adds what the CUDA backend would describe for a GPU where it cannot be asked: in a build without
// it, or for a GPU that it does not run on. Layouts, types, gates of ReLUs as bits, branches within
// the image that a concat makes of them and limits of size are the backend's. The engines of
// convolutions are unknown: they are taken to need no workspace, and none to take a batch norm in,
// so that --fusion gets as far as bn. No kernel of this table can be made.
void add_assumed_kernels(KernelTable& table);

// The exchange of gradients among ranks, which takes them as they lie.
void add_assumed_exchange(KernelTable& table);

}  // namespace cnn::bench
