#pragma once

#include "runtime/kernel.h"

namespace cnn::bench {

// Adds descriptions of the CUDA backend's kernels for a GPU that cannot be queried: in a build
// without CUDA, or for a GPU that the backend does not support. Layouts, types, ReLU masks, concat
// branches in place and size limits match the backend. The convolution engines are unknown: the
// table assumes that they need no workspace and fuse no batch norm, so --fusion reaches at most bn.
// This table cannot make kernels.
void add_assumed_kernels(KernelTable& table);

// Adds the exchange of gradients among ranks, which accepts every layout.
void add_assumed_exchange(KernelTable& table);

}  // namespace cnn::bench
